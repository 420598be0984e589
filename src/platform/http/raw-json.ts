const RAW = Symbol('raw json');

/** JSON text that is sent unparsed, so that no number is rounded. */
export type RawJson = Readonly<{ [RAW]: string }>;

/** The text must be valid JSON, as json and jsonb of PostgreSQL are; it is sent unchanged. */
export function rawJson(text: string): RawJson {
  return { [RAW]: text };
}

/** JSON.stringify for values with raw JSON and bigints, which become numbers. */
export function stringifyWithRaw(value: unknown): string {
  return write(value) ?? 'null';
}

function write(value: unknown): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (isRawJson(value)) return value[RAW];
  if (Array.isArray(value)) return `[${value.map((item) => write(item) ?? 'null').join(',')}]`;
  if ('toJSON' in value && typeof value.toJSON === 'function') return JSON.stringify(value);
  return writeObject(value as Readonly<Record<string, unknown>>);
}

function writeObject(object: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const [key, value] of Object.entries(object)) {
    const written = write(value);
    if (written === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${written}`;
  }
  return `{${text}}`;
}

function isRawJson(value: object): value is RawJson {
  return RAW in value;
}
