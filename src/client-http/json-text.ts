/** JSON that is sent as it is written: numbers keep their digits. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    JSON.parse(text);
    this.text = text;
  }
}

/** An object as JSON, without the fields that are undefined. */
export function serializeFields(fields: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        `${JSON.stringify(name)}:${value instanceof JsonText ? value.text : JSON.stringify(value)}`,
    );
  return `{${members.join(',')}}`;
}
