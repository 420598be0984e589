/**
 * A statement, or a part of one, with its parameters apart. Every `${}` becomes a bound parameter, except
 * another `sql` value, which is spliced in with its own parameters. There is no way to put a string into the
 * text, so there is nothing to escape.
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

  /** The text with `$1`, `$2`, … as the driver wants it. */
  get text(): string {
    let text = this.strings[0] ?? '';
    for (let i = 1; i < this.strings.length; i += 1) text += `$${i}${this.strings[i]}`;
    return text;
  }
}

export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  const texts: string[] = [strings[0] ?? ''];
  const bound: unknown[] = [];
  values.forEach((value, i) => {
    const after = strings[i + 1] ?? '';
    if (value instanceof Sql) {
      texts[texts.length - 1] += value.strings[0] ?? '';
      texts.push(...value.strings.slice(1));
      texts[texts.length - 1] += after;
      bound.push(...value.values);
    } else {
      bound.push(value);
      texts.push(after);
    }
  });
  return new Sql(texts, bound);
}

/**
 * The same statement, for connections to keep ready. For short ones that are sent often, and whose plan is good however
 * large the tables have become since it was made: it may be used for a while after that.
 */
export function prepared(statement: Sql): Sql {
  return new Sql(statement.strings, statement.values, { isPrepared: true });
}

/** Parts put one after another, with `between` in the gaps; nothing for no parts. */
export function joinSql(parts: readonly Sql[], between: Sql): Sql {
  return parts.reduce((all, part, i) => (i === 0 ? part : sql`${all}${between}${part}`), sql``);
}
