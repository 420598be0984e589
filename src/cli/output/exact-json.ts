declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: Readonly<{ source?: string }>) => unknown,
    ): unknown;
  }
}

/** A number that JavaScript would round or write differently, with the digits that it came with. */
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

/** As JSON.parse, but stringified again every number still has the digits that it came with. */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? new ExactNumber(source)
      : value,
  );
}
