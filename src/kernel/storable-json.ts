/** As `JSON.stringify` writes, only NUL, other control characters and lone surrogates have an escape with their number. */
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][\da-f]{2})/g;

/** JSON text of `JSON.stringify` as PostgreSQL can store it: NUL and lone surrogates become U+FFFD. */
export function storableJson(text: string): string {
  return text.includes('\\u') ? text.replace(unstorable, '$1\uFFFD') : text;
}
