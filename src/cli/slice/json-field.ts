import { JsonText } from '../../client-http/index.ts';
import type { ApiCall } from '../api/api-client.ts';
import { UsageError } from '../exit-code.ts';
import { parseJson, readText } from '../json-input.ts';
import type { Terminal } from '../terminal.ts';
import type { Input, Values } from './define-command.ts';

/** A field of the body whose JSON is given with `--<field> <json>` or read from a file. */
export type JsonField = Readonly<{
  field: string;
  text: string;
  isRequired?: true;
  isObject?: true;
  /** Also `--<field>-file <file>`. */
  hasFile?: true;
}>;

export function jsonInputs(json: JsonField | undefined): readonly Input[] {
  if (json === undefined) return [];
  const { field, text, hasFile } = json;
  const inline = { flags: `--${field} <json>`, text };
  if (hasFile !== true) return [inline];
  return [
    { ...inline, conflicts: [`${field}File`] },
    { flags: `--${field}-file <file>`, text: `${text}, from a file; - is standard input` },
  ];
}

/** Puts the JSON into the body as it was written: numbers keep their digits, and the server sees duplicate names. */
export async function withJson(
  call: ApiCall,
  json: JsonField | undefined,
  values: Values,
  terminal: Terminal,
): Promise<ApiCall> {
  if (json === undefined) return call;
  const { field, isRequired, isObject, hasFile } = json;
  const text = values[field] as string | undefined;
  const file = values[`${field}File`] as string | undefined;
  if (text === undefined && file === undefined && isRequired !== true) return call;
  const what = `the ${field}`;
  const options = hasFile === true ? `--${field} or --${field}-file` : `--${field}`;
  const raw = await readText(terminal, { text, file, what, options });
  const value = parseJson(raw, what);
  if (isObject === true && (typeof value !== 'object' || value === null || Array.isArray(value)))
    throw new UsageError(`${what} is not a JSON object`);
  return { ...call, input: { ...call.input, [field]: new JsonText(raw) } };
}
