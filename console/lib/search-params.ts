/** Search parameters as plain text, so that addresses can be read, shared and written by hand. */
export type SearchParams = Readonly<Record<string, string>>;

export function parseSearchParams(text: string): SearchParams {
  return Object.fromEntries(new URLSearchParams(text));
}

/** Colons and commas stay readable. */
export function printSearchParams(search: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(search).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
  );
  const text = new URLSearchParams(given).toString().replaceAll('%3A', ':').replaceAll('%2C', ',');
  return text === '' ? '' : `?${text}`;
}
