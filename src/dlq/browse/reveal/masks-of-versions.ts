import type { FastifyRequest } from 'fastify';
import { AppError } from '../../../kernel/errors.ts';
import type { Masks } from '../../../kernel/protect/protection.ts';
import type { PayloadMasks } from '../../../platform/http/access/payload-masks.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { messageNotFound } from '../../stored-message.ts';
import { findHead } from '../find-message.ts';

/** By the rules for all topics that the message has and the versions had. */
export async function masksOfVersions(
  { db, masking }: Readonly<{ db: Queryable; masking: PayloadMasks }>,
  request: FastifyRequest,
  id: string,
  versions: readonly Readonly<{ target: string }>[],
): Promise<Masks> {
  const head = await findHead(db, id);
  if (head === null) throw messageNotFound(id);
  return masking.of(request, head.originalTopic, head.sourceTopic, ...versions.map(({ target }) => target));
}

/** For bytes that cannot be shown: with a mask in them they would be taken for the record. */
export function protectedRecord(id: string): AppError {
  return new AppError(
    'SYS_DLQ_PROTECTED',
    'forbidden',
    `dlq message ${id} has protected parts: POST …/reveal with a reason returns it`,
  );
}
