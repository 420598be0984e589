import { decodeBase64 } from '../../../lib/bytes/base64.ts';
import type { ListedMessage } from '../../../lib/server-shapes.ts';

const shownKeyBytes = 16;

type Key = Pick<ListedMessage, 'key' | 'key_base64'>;

/** A key as text, else its first bytes in hexadecimal; null if there is none. */
export function keyText({ key, key_base64: base64 }: Key): string | null {
  if (base64 === undefined) return key;
  const bytes = decodeBase64(base64);
  const shown = [...bytes.subarray(0, shownKeyBytes)]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
  return `0x${shown}${bytes.length > shownKeyBytes ? '…' : ''}`;
}

type Place = Readonly<{ topic: string | null; partition: number | null; offset: number | null }>;

const published = ['key', 'value', 'headers'] as const;
type PublishedPart = (typeof published)[number];

/** What an edit has to give again before the message can be retried. */
export function missingParts(
  { removed_parts: removed = [] }: Pick<ListedMessage, 'removed_parts'>,
  { partName }: Readonly<{ partName: (part: PublishedPart) => string }>,
): readonly string[] {
  return published.filter((part) => removed.includes(part)).map(partName);
}

/** `orders.v1 / 4 / 88123`, as far as it is known. */
export function placeText({ topic, partition, offset }: Place): string | null {
  if (topic === null) return null;
  return [topic, partition, offset].filter((part) => part !== null).join(' / ');
}

/** The class without its package, unless the message begins with it. */
export function errorTitle({
  error_class: name,
  error_message: message,
}: Pick<ListedMessage, 'error_class' | 'error_message'>): string {
  const short = name?.split(/[.$]/).at(-1) ?? '';
  return short === '' || message.startsWith(short) || message.startsWith(name ?? '')
    ? message
    : `${short}: ${message}`;
}
