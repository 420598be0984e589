declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: Readonly<{ source?: string }>) => unknown,
    ): unknown;
  }
}

/** A number that JavaScript would round or format differently, with its original digits. */
class ExactNumber {
  readonly #digits: string;

  constructor(digits: string) {
    this.#digits = digits;
  }

  toString(): string {
    return this.#digits;
  }

  toJSON(): object {
    return JSON.rawJSON(this.#digits);
  }
}

/** Like JSON.parse, but numbers keep their digits when stringified again. */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? new ExactNumber(source)
      : value,
  );
}
