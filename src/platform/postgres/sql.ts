/**
 * A statement, or a fragment of one, with its parameters. Every `${}` becomes a bound parameter, except another `sql`
 * value, which is spliced in with its own parameters. A string cannot get into the text, so nothing has to be escaped.
 */
export class Sql {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
  /** Connections keep it ready. */
  readonly isPrepared: boolean;

  constructor(strings: readonly string[], values: readonly unknown[], { isPrepared = false } = {}) {
    this.strings = strings;
    this.values = values;
    this.isPrepared = isPrepared;
  }

  /** The text with `$1`, `$2`, …. */
  get text(): string {
    let text = texts.get(this.strings);
    if (text === undefined) texts.set(this.strings, (text = textOf(this.strings)));
    return text;
  }
}

/** A template without nested templates has the same strings each time, and so the same text. */
const texts = new WeakMap<readonly string[], string>();

function textOf(strings: readonly string[]): string {
  let text = strings[0] ?? '';
  for (let i = 1; i < strings.length; i += 1) text += `$${i}${strings[i]}`;
  return text;
}

export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  return values.some((value) => value instanceof Sql) ? splice(strings, values) : new Sql(strings, values);
}

function splice(strings: readonly string[], values: readonly unknown[]): Sql {
  const parts: string[] = [strings[0] ?? ''];
  const bound: unknown[] = [];
  values.forEach((value, i) => {
    const after = strings[i + 1] ?? '';
    if (value instanceof Sql) {
      parts[parts.length - 1] += value.strings[0] ?? '';
      parts.push(...value.strings.slice(1));
      parts[parts.length - 1] += after;
      bound.push(...value.values);
    } else {
      bound.push(value);
      parts.push(after);
    }
  });
  return new Sql(parts, bound);
}

/**
 * The same statement, for connections to keep ready. For short ones that are sent often, and whose plan is good however
 * large the tables have become since it was made: it may be used for a while after that.
 */
export function prepared(statement: Sql): Sql {
  return new Sql(statement.strings, statement.values, { isPrepared: true });
}

/** Joins fragments with `between`. */
export function joinSql(parts: readonly Sql[], between: Sql): Sql {
  const all = parts.flatMap((part, i) => (i === 0 ? [part] : [between, part]));
  return splice([], all);
}
