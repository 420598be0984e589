import { formatJson, type Formatted } from '../../../lib/exact-json/format-json.ts';

/** What is entered for the order that takes the place of another. */
export type Correction = Readonly<{
  request: string;
  key: string;
  reason: string;
  isChecked: boolean;
  /** In production the key of the original is typed. */
  typed: string;
}>;

/** What the correction has to meet. */
export type Original = Readonly<{ key: string; isInDoubt: boolean; isTyped: boolean }>;

export type CorrectionProblem =
  | Readonly<{ field: 'request'; code: 'not_json'; line: number; column: number }>
  | Readonly<{ field: 'request'; code: 'not_object' }>
  | Readonly<{ field: 'request'; code: 'duplicate_keys'; keys: readonly string[] }>
  | Readonly<{ field: 'key'; code: 'bad_key' | 'same_key' }>
  | Readonly<{ field: 'reason' | 'checked' | 'typed'; code: 'missing' }>;

const keyPattern = /^[!-~]{8,64}$/;
const maxKey = 64;

/** Why the correction cannot be sent, in the order of the fields. */
export function problemsOf(correction: Correction, original: Original): readonly CorrectionProblem[] {
  const problems: (CorrectionProblem | null)[] = [
    requestProblem(formatJson(correction.request)),
    keyPattern.test(correction.key)
      ? correction.key === original.key
        ? { field: 'key', code: 'same_key' }
        : null
      : { field: 'key', code: 'bad_key' },
    original.isInDoubt && !correction.isChecked ? { field: 'checked', code: 'missing' } : null,
    correction.reason.trim() === '' ? { field: 'reason', code: 'missing' } : null,
    original.isTyped && correction.typed !== original.key ? { field: 'typed', code: 'missing' } : null,
  ];
  return problems.filter((problem) => problem !== null);
}

function requestProblem(formatted: Formatted): CorrectionProblem | null {
  if (!formatted.isJson)
    return { field: 'request', code: 'not_json', line: formatted.line, column: formatted.column };
  if (!formatted.text.startsWith('{')) return { field: 'request', code: 'not_object' };
  const { duplicateKeys: keys } = formatted;
  return keys.length === 0 ? null : { field: 'request', code: 'duplicate_keys', keys };
}

/** A key that nobody else counts up to: `order-7` becomes `order-7-r2`, then `order-7-r3`. */
export function nextKey(key: string): string {
  const [, stem = key, revision] = /^(.+?)(?:-r(\d{1,3}))?$/.exec(key) ?? [];
  const end = `-r${revision === undefined ? 2 : Number(revision) + 1}`;
  return stem.slice(0, maxKey - end.length) + end;
}

/** The body of the request to the API. The corrected request goes in as it was written. */
export function bodyOf({ request, key, reason, isChecked }: Correction): string {
  const rest = {
    idempotency_key: key,
    reason: reason.trim(),
    ...(isChecked ? { effect_checked: true } : {}),
  };
  return `${JSON.stringify(rest).slice(0, -1)},"request":${request}}`;
}
