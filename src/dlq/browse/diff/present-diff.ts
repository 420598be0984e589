import { createHash } from 'node:crypto';
import type { Header } from '../../../kernel/broker-record.ts';
import type { Masks } from '../../../kernel/protect/protection.ts';
import { isText, type Json } from '../../present.ts';
import { coverCompared } from '../reveal/covered-records.ts';
import type { ComparedVersion } from '../read-versions.ts';
import { diffHeaders, diffValues, isSame } from './diff-records.ts';

/** Longer parts are shown by their size and hash. */
const shownBytes = 4096;
const shownHeaders = 500;

/** What changed between two versions of a message. */
export function presentDiff(
  id: string,
  versions: readonly [ComparedVersion, ComparedVersion],
  { isJson, masks }: Readonly<{ isJson: (bytes: Buffer) => boolean; masks: Masks }>,
): Json {
  const [from, to] = [coverCompared(versions[0], masks), coverCompared(versions[1], masks)];
  const isKeySame = isSame(versions[0].keySha256, versions[1].keySha256);
  return {
    id,
    from: from.version,
    to: to.version,
    key: isKeySame ? null : { from: presentKeyPart(from), to: presentKeyPart(to) },
    target_topic: from.target === to.target ? null : { from: from.target, to: to.target },
    headers: presentHeadersDiff(from, to),
    value: isSame(versions[0].valueSha256, versions[1].valueSha256)
      ? null
      : presentValueDiff(from, to, isJson),
  };
}

function presentKeyPart({ key, keyBytes, keySha256 }: ComparedVersion): Json {
  return { bytes: keyBytes, sha256: keySha256?.toString('hex') ?? null, ...presentShort(key) };
}

function presentValuePart({ value, valueBytes, valueSha256 }: ComparedVersion): Json {
  return { bytes: valueBytes, sha256: valueSha256?.toString('hex') ?? null, ...presentShort(value) };
}

function presentShort(bytes: Buffer | null): Json {
  if (bytes === null || bytes.length > shownBytes) return {};
  return isText(bytes) ? { text: bytes.toString('utf8') } : { base64: bytes.toString('base64') };
}

function presentHeadersDiff(from: ComparedVersion, to: ComparedVersion): Json | null {
  const nothing = { added: [], removed: [], changed: [], reordered: false };
  if (from.headers === null || to.headers === null) return { ...nothing, truncated: true };
  const diff = diffHeaders(from.headers, to.headers);
  if (diff === null) return null;
  const { added, removed, changed, isReordered } = diff;
  return {
    added: added.slice(0, shownHeaders).map(presentHeaderPart),
    removed: removed.slice(0, shownHeaders).map(presentHeaderPart),
    changed: changed.slice(0, shownHeaders).map((change) => ({
      name: presentName(change.from),
      from: presentBytes(change.from.value),
      to: presentBytes(change.to.value),
    })),
    reordered: isReordered,
    truncated: Math.max(added.length, removed.length, changed.length) > shownHeaders,
  };
}

function presentHeaderPart(header: Header): Json {
  return { name: presentName(header), value: presentBytes(header.value) };
}

/** A name is short; one that is not text is shown with its wrong characters replaced. */
function presentName({ key }: Header): string {
  return key.toString('utf8', 0, shownBytes).replaceAll('\0', '\ufffd');
}

function presentBytes(bytes: Buffer | null): Json {
  if (bytes === null) return { bytes: null, sha256: null };
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { bytes: bytes.length, sha256, ...presentShort(bytes) };
}

function presentValueDiff(
  from: ComparedVersion,
  to: ComparedVersion,
  isJson: (bytes: Buffer) => boolean,
): Json {
  const parts = { from: presentValuePart(from), to: presentValuePart(to) };
  const isLoaded = ({ value, valueBytes }: ComparedVersion): boolean => value !== null || valueBytes === null;
  const diff = isLoaded(from) && isLoaded(to) ? diffValues(from.value, to.value, isJson) : null;
  return {
    ...parts,
    format: diff?.format ?? 'too_large',
    first_difference: diff?.firstDifference ?? null,
    lines: diff?.lines ?? [],
    truncated: diff?.isTruncated ?? true,
    coarse: diff?.isCoarse ?? false,
  };
}
