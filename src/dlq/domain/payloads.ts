import { AppError } from '../../kernel/errors.ts';
import { keyIdOf, lookupHash, open, seal, type DataKey } from '../../kernel/protect/envelope.ts';
import { KeyError, type Keyring, type KeyTrouble } from '../../kernel/protect/keyring.ts';

/**
 * Which messages are stored encrypted, and the one place that encrypts and decrypts them. Each part of a message is an
 * envelope of its own, bound to the message's id and the part: its row may move to the archive, and an edit may leave a
 * part as it is. Key and record are found by keyed hashes. Which data keys are needed is read from the envelopes.
 */
export type Payloads = Readonly<{
  /** Whether new messages of one of these topics are encrypted. */
  isProtected(topics: readonly string[]): boolean;
  /** The value as JSON, if it is JSON that the column for it would take: an encrypted message has no such column. */
  jsonOf(value: Buffer): string | null;
  /** Throws an AppError if there is no usable key. */
  sealer(): Promise<Sealer>;
  /** In order. Parts that are not encrypted are returned as they are; one that cannot be read fails alone. */
  open<Parts extends StoredParts>(items: readonly StoredItem<Parts>[]): Promise<readonly Opened<Parts>[]>;
  /** Whether there may be encrypted messages, which a full-text search finds by their errors only. */
  hasAny(): Promise<boolean>;
  /** Null if no message was ever encrypted. Throws an AppError. */
  hashes(): Promise<LookupHashes | null>;
}>;

/** A header in the form of the column, or the envelope of all headers. */
type StoredHeaders = readonly object[] | null;

/** Parts of a message as its columns have them. */
export type StoredParts = Readonly<{
  key?: Buffer | null;
  value?: Buffer | null;
  headers?: StoredHeaders;
  stack?: string | null;
}>;

export type StoredItem<Parts extends StoredParts> = Readonly<{ id: string; isSealed: boolean; parts: Parts }>;

export type Opened<Parts> = Readonly<{ parts: Parts; error: null } | { parts: null; error: AppError }>;

/** How encrypted messages are found: a database without the key does not tell which key they have. */
export type LookupHashes = Readonly<{
  ofKey(key: Buffer): Buffer;
  /** Of the hash that an attempt notes of its record. */
  ofRecord(sha256: Buffer): Buffer;
}>;

export type Sealer = LookupHashes &
  Readonly<{
    keyId: number;
    seal<Parts extends StoredParts>(id: string, parts: Parts): Parts;
  }>;

export const unreadableCodes = ['SYS_DLQ_KEY_UNAVAILABLE', 'SYS_DLQ_CANNOT_DECRYPT'] as const;
export type UnreadableCode = (typeof unreadableCodes)[number];

export type PayloadDeps = Readonly<{
  keyring: Keyring;
  isProtectedTopic: (topic: string) => boolean;
  isJson: (bytes: Buffer) => boolean;
  onUnreadable?: (code: UnreadableCode) => void;
}>;

export function createPayloads(deps: PayloadDeps): Payloads {
  const { keyring, isProtectedTopic, isJson, onUnreadable = () => {} } = deps;
  return {
    isProtected: (topics) => topics.some(isProtectedTopic),
    jsonOf: (value) => (isJson(value) ? value.toString() : null),
    async sealer() {
      const { data, lookup } = await orUnavailable(keyring.current());
      return { ...hashesWith(lookup), keyId: data.id, seal: (id, parts) => sealParts(data, id, parts) };
    },
    async open(items) {
      const ids = new Set(items.flatMap((item) => (item.isSealed ? keyIdsOf(item.parts) : [])));
      const keys = ids.size === 0 ? new Map<number, DataKey | KeyTrouble>() : await keyring.find(ids);
      return items.map((item) => {
        if (!item.isSealed) return { parts: item.parts, error: null };
        try {
          return { parts: openParts(keys, item.id, item.parts), error: null };
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          onUnreadable(error.code as UnreadableCode);
          return { parts: null, error };
        }
      });
    },
    hasAny: keyring.isUsed,
    async hashes() {
      const lookup = await orUnavailable(keyring.lookup());
      return lookup === null ? null : hashesWith(lookup);
    },
  };
}

/** Of a slice without encrypted messages. */
export const clearPayloads: Payloads = createPayloads({
  keyring: {
    current: () => Promise.reject(new KeyError('nothing is encrypted')),
    find: () => Promise.resolve(new Map()),
    lookup: () => Promise.resolve(null),
    isUsed: () => Promise.resolve(false),
  },
  isProtectedTopic: () => false,
  isJson: () => false,
});

/** One item; throws if it cannot be read. */
export async function openOne<Parts extends StoredParts>(
  payloads: Payloads,
  item: StoredItem<Parts>,
): Promise<Parts> {
  const [opened] = await payloads.open([item]);
  if (opened === undefined) throw new Error('one item was opened');
  if (opened.error !== null) throw opened.error;
  return opened.parts;
}

async function orUnavailable<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof KeyError) throw keyUnavailable(error.message);
    throw error;
  }
}

function hashesWith(lookup: Buffer): LookupHashes {
  return {
    ofKey: (key) => lookupHash(lookup, 'key', key),
    ofRecord: (sha256) => lookupHash(lookup, 'record', sha256),
  };
}

type Envelope = Readonly<{ sealed: string; count: number }>;

function sealParts<Parts extends StoredParts>(data: DataKey, id: string, parts: Parts): Parts {
  const sealed = (column: string, bytes: Buffer): Buffer =>
    seal(data, { slice: 'dlq', item: id, column }, bytes);
  const { key, value, headers, stack } = parts;
  return {
    ...parts,
    ...(key ? { key: sealed('key', key) } : {}),
    ...(value ? { value: sealed('value', value) } : {}),
    ...(headers
      ? {
          headers: [
            {
              sealed: sealed('headers', Buffer.from(JSON.stringify(headers))).toString('base64'),
              count: headers.length,
            } satisfies Envelope,
          ],
        }
      : {}),
    ...(stack ? { stack: sealed('stack', Buffer.from(stack)).toString('base64') } : {}),
  };
}

function openParts<Parts extends StoredParts>(
  keys: ReadonlyMap<number, DataKey | KeyTrouble>,
  id: string,
  parts: Parts,
): Parts {
  const opened = (column: string, bytes: Buffer): Buffer => openPart(keys, { id, column }, bytes);
  const { key, value, headers, stack } = parts;
  return {
    ...parts,
    ...(key ? { key: opened('key', key) } : {}),
    ...(value ? { value: opened('value', value) } : {}),
    ...(headers
      ? { headers: JSON.parse(opened('headers', headersEnvelope(headers)).toString()) as StoredHeaders }
      : {}),
    ...(stack ? { stack: opened('stack', Buffer.from(stack, 'base64')).toString() } : {}),
  };
}

function openPart(
  keys: ReadonlyMap<number, DataKey | KeyTrouble>,
  { id, column }: Readonly<{ id: string; column: string }>,
  sealed: Buffer,
): Buffer {
  const keyId = keyIdOf(sealed);
  const key = keyId === null ? undefined : keys.get(keyId);
  if (key !== undefined && 'trouble' in key) throw keyUnavailable(key.trouble);
  const plain = key === undefined ? null : open(key, { slice: 'dlq', item: id, column }, sealed);
  if (plain === null)
    throw new AppError(
      'SYS_DLQ_CANNOT_DECRYPT' satisfies UnreadableCode,
      'semantic',
      `cannot decrypt the ${column} of message ${id}: the stored bytes were changed or belong to another message`,
    );
  return plain;
}

function headersEnvelope(headers: readonly object[]): Buffer {
  const { sealed } = (headers[0] ?? {}) as Partial<Envelope>;
  return Buffer.from(typeof sealed === 'string' ? sealed : '', 'base64');
}

function keyIdsOf({ key, value, headers, stack }: StoredParts): readonly number[] {
  const envelopes = [
    key,
    value,
    headers ? headersEnvelope(headers) : null,
    // Only the head is needed here; the whole text can be large.
    stack ? Buffer.from(stack.slice(0, 64), 'base64') : null,
  ];
  return envelopes.flatMap((bytes) => (bytes ? (keyIdOf(bytes) ?? []) : []));
}

function keyUnavailable(why: string): AppError {
  return new AppError(
    'SYS_DLQ_KEY_UNAVAILABLE' satisfies UnreadableCode,
    'unavailable',
    `cannot decrypt: ${why}`,
    { retryAfterMs: 5000 },
  );
}
