import type { FoundItem } from '../../../../lib/server-shapes.ts';
import type { Headers } from '../use-headers.ts';

/** The trace of its `traceparent`; null if there is none, or if it is not one. */
export function traceOf(headers: Headers | 'protected' | undefined): string | null {
  if (headers === undefined || headers === 'protected') return null;
  const value = headers.find(({ key }) => key === 'traceparent')?.value ?? '';
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/i.exec(value)?.[1]?.toLowerCase() ?? null;
}

/** What was found, without the message itself. */
export function relatedOf(items: readonly FoundItem[], id: string): readonly FoundItem[] {
  return items.filter((item) => item.kind !== 'message' || item.id !== id);
}
