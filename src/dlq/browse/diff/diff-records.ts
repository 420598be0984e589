import type { Header } from '../../../kernel/broker-record.ts';
import { isText } from '../../present.ts';
import { diffLines, type LineDiff } from './diff-lines.ts';
import { formatJson } from './format-json.ts';

/** What an edit changed in a record. Null where nothing did. */

export type HeadersDiff = Readonly<{
  added: readonly Header[];
  removed: readonly Header[];
  changed: readonly Readonly<{ from: Header; to: Header }>[];
  /** The same headers in another order. */
  isReordered: boolean;
}>;

/** The first header of a name is compared with the first one of that name, the second with the second, and so on. */
export function diffHeaders(from: readonly Header[], to: readonly Header[]): HeadersDiff | null {
  const [old, fresh] = [byPlace(from), byPlace(to)];
  const added = [...fresh].flatMap(([place, header]) => (old.has(place) ? [] : [header]));
  const removed = [...old].flatMap(([place, header]) => (fresh.has(place) ? [] : [header]));
  const changed = [...old].flatMap(([place, header]) => {
    const next = fresh.get(place);
    return next === undefined || isSame(header.value, next.value) ? [] : [{ from: header, to: next }];
  });
  const isEqual = added.length + removed.length + changed.length === 0;
  const places = [...fresh.keys()];
  const isReordered = isEqual && [...old.keys()].some((place, i) => place !== places[i]);
  return isEqual && !isReordered ? null : { added, removed, changed, isReordered };
}

function byPlace(headers: readonly Header[]): ReadonlyMap<string, Header> {
  const counts = new Map<string, number>();
  return new Map(
    headers.map((header) => {
      const name = header.key.toString('latin1');
      const place = counts.get(name) ?? 0;
      counts.set(name, place + 1);
      return [`${place} ${name}`, header];
    }),
  );
}

export function isSame(from: Buffer | null, to: Buffer | null): boolean {
  return from === null || to === null ? from === to : from.equals(to);
}

export type ValueDiff = LineDiff &
  Readonly<{
    /** What was compared: JSON with one member per line, the text, or only the bytes. */
    format: 'json' | 'text' | 'binary';
    /** The position of the first byte that differs. */
    firstDifference: number;
  }>;

const nothing: LineDiff = { lines: [], isTruncated: false, isCoarse: false };

/** Formatted JSON has at most this many characters; indentation can make it much longer than the value. */
const maxFormattedLength = 4 << 20;

export function diffValues(
  from: Buffer | null,
  to: Buffer | null,
  isJson: (bytes: Buffer) => boolean,
): ValueDiff | null {
  if (isSame(from, to)) return null;
  const [old, fresh] = [from ?? Buffer.alloc(0), to ?? Buffer.alloc(0)];
  const firstDifference = firstDifferenceOf(old, fresh);
  if (!isText(old) || !isText(fresh)) return { format: 'binary', firstDifference, ...nothing };
  const texts = { from: old.toString('utf8'), to: fresh.toString('utf8') };
  const isJsonOrNull = (bytes: Buffer | null): boolean => bytes === null || isJson(bytes);
  if (isJsonOrNull(from) && isJsonOrNull(to)) {
    const formatted = [texts.from, texts.to].map((text) =>
      text === '' ? '' : formatJson(text, maxFormattedLength),
    );
    const [a = null, b = null] = formatted;
    if (a !== null && b !== null) return { format: 'json', firstDifference, ...diffLines(a, b) };
  }
  return { format: 'text', firstDifference, ...diffLines(texts.from, texts.to) };
}

const COMPARED_AT_ONCE = 4096;

function firstDifferenceOf(a: Buffer, b: Buffer): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  const isEqual = (end: number): boolean => a.subarray(at, end).equals(b.subarray(at, end));
  while (at + COMPARED_AT_ONCE <= most && isEqual(at + COMPARED_AT_ONCE)) at += COMPARED_AT_ONCE;
  while (at < most && a[at] === b[at]) at += 1;
  return at;
}
