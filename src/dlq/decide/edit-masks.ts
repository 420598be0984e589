import type { FastifyRequest } from 'fastify';
import type { Header } from '../../kernel/broker-record.ts';
import { AppError } from '../../kernel/errors.ts';
import { countMasks } from '../../kernel/protect/mask.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { FindHead, MessageBody } from '../stored-message.ts';
import { publishedParts, type RemovablePart } from '../domain/dead-letter.ts';
import type { Changes } from './edit-message.ts';

export type MaskDeps = Readonly<{
  findHead: FindHead;
  /** The newest version. */
  getRecord: (id: string) => Promise<MessageBody>;
  masking: PayloadMasks;
}>;

/**
 * Refuses an editor who does not see the payload, and an edit that would store a mask in place of what it covers. Looks
 * at the message as it is now: if it changes before the edit, its tag refuses the edit.
 */
export async function requireNoMask(
  { findHead, getRecord, masking }: MaskDeps,
  request: FastifyRequest,
  id: string,
  changes: Changes,
): Promise<void> {
  const head = await findHead(id);
  if (head === null) return;
  masking.requirePayload(request, head.originalTopic, 'to edit a message');
  if (!hasMask(changes)) return;
  const masks = masking.of(request, head.originalTopic, head.sourceTopic);
  const record = await getRecord(id);
  const part = findGivenMask(changes, head.removedParts ?? []) ?? findWrittenMask(changes, record, masks);
  if (part === null) return;
  const message =
    'has the mask of a protected part in place of what it covers; reveal the message and send the whole part';
  throw new AppError('SYS_DLQ_WRONG_EDIT', 'semantic', `${part} ${message}`, {
    details: [{ field: part, reason: 'masked', message }],
  });
}

/** A part that an edit gives again, in place of one from which content was removed, has no mask left. */
function findGivenMask(
  changes: Changes,
  removed: readonly RemovablePart[],
): 'key' | 'value' | 'headers' | null {
  const masks = {
    key: countIn(changes.key),
    value: countIn(changes.value),
    headers: countIn(joined(changes.headers ?? [])),
  };
  return publishedParts.find((part) => removed.includes(part) && masks[part] > 0) ?? null;
}

/**
 * The part of an edit that would store a mask in place of what it covers, for an editor that began with the message as
 * it is shown; null if there is none. A part that is not protected may say `[masked]` as often as it did.
 */
function findWrittenMask(
  { key, value, headers }: Changes,
  stored: MessageBody,
  masks: Masks,
): 'key' | 'value' | 'headers' | null {
  const coversKey = stored.key !== null && masks.key(stored.key) !== stored.key;
  if (isWritten(key, stored.key, coversKey)) return 'key';
  const coversValue = stored.value !== null && masks.value(stored.value) !== stored.value;
  if (isWritten(value, stored.value, coversValue)) return 'value';
  if (headers === undefined) return null;
  const coversHeaders = stored.headers.some((header) => isCovered(header, masks));
  return isWritten(joined(headers), joined(stored.headers), coversHeaders) ? 'headers' : null;
}

/** Whether any part has a mask at all. */
function hasMask({ key, value, headers = [] }: Changes): boolean {
  return countIn(key) + countIn(value) + countIn(joined(headers)) > 0;
}

function isWritten(part: Buffer | null | undefined, stored: Buffer | null, isProtected: boolean): boolean {
  const count = countIn(part);
  return count > 0 && (isProtected || count > countIn(stored));
}

function isCovered({ key, value }: Header, masks: Masks): boolean {
  const shown = masks.header(key.toString('utf8'), value);
  return shown === undefined || shown.value !== value;
}

function joined(headers: readonly Header[]): Buffer {
  return Buffer.concat(headers.flatMap(({ value }) => (value === null ? [] : [value, Buffer.from('\n')])));
}

function countIn(part: Buffer | null | undefined): number {
  return part === null || part === undefined ? 0 : countMasks(part.toString('latin1'));
}
