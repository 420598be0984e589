import type { StaticDecode, TSchema } from 'typebox';

import { listOf } from '../../src/config/formats/value.ts';
import type { InCode } from '../../src/config/in-code.ts';
import { readValue } from '../../src/config/read-value.ts';

type Issue = Readonly<{ at: string; reason: string; suggestion: string | undefined }>;

export type Parsed<T> =
  | Readonly<{ ok: true; value: T }>
  | Readonly<{ ok: false; issues: readonly Issue[]; rest: unknown }>;

/** Reads one value by a part of a schema, as in a list, where paths are short and null is a value. */
export function parseValue<T extends TSchema>(node: T, value: unknown): Parsed<InCode<StaticDecode<T>>> {
  const { value: read, problems } = readValue(listOf(node), [value], () => undefined);
  const rest: unknown = Array.isArray(read) ? read[0] : undefined;
  if (problems.length === 0) return { ok: true, value: rest as InCode<StaticDecode<T>> };
  const issues = problems.map(({ path, reason, suggestion }) => ({
    at: path.slice('[0]'.length),
    reason,
    suggestion,
  }));
  return { ok: false, issues, rest };
}
