import { Type } from 'typebox';
import { AppError } from '../kernel/errors.ts';
import type { Masks } from '../kernel/protect/protection.ts';
import { formatInstant } from '../kernel/timestamp.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope } from '../platform/http/access/route-access.ts';
import { checkedAs, nullable, Timestamp, Uuid } from '../platform/http/schema-parts.ts';
import { apiRoot, invalidField, readInstantField, readUuidField } from '../platform/http/slice-input.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { isQueueName, QUEUE_NAME_PATTERN } from './domain/queue-settings.ts';
import { isJobOf } from './jobs-table.ts';
import type { Pause } from './queue-pause.ts';

/** What the routes of several flows share. */

export const root = apiRoot('jobs');

/** Handlers check both with the functions below, before the database is asked. */
export const JobParams = Type.Object({ id: Uuid });
/** `readQueueName` checks it. */
export const queueNameChecks = checkedAs({ minLength: 1, maxLength: 100, pattern: QUEUE_NAME_PATTERN });
export const QueueParams = Type.Object({
  queue: Type.String({ examples: ['mail'], maxLength: 1000, ...queueNameChecks }),
});

export function readJobId(text: string): string {
  return readUuidField('jobs', 'id', text);
}

export function readQueueName(text: string): string {
  if (isQueueName(text)) return text;
  const message =
    'must be 1 to 100 lower-case letters, digits, dots, hyphens or underscores, and begin with a letter';
  throw invalidField('jobs', 'queue', 'format', message);
}

/** Undefined if the field was not sent. */
export function readInstant(field: string, text: string | undefined): Date | undefined {
  return readInstantField('jobs', field, text);
}

export function jobNotFound(jobId: string): AppError {
  return new AppError('SYS_JOBS_NOT_FOUND', 'not_found', `job not found: ${jobId}`);
}

/** A role may be narrowed to queues; the job's queue counts. */
export function jobScope(db: Queryable): ItemScope {
  return scopeOfItem('queues', {
    param: 'id',
    read: readJobId,
    async namesOf(jobId) {
      const rows = await db.query<{ queue: string }>(
        sql`SELECT queue FROM jobs.job_queue WHERE job_id = ${jobId}`,
      );
      return rows.length === 0 ? undefined : rows.map(({ queue }) => queue);
    },
    async isOwn(jobId, subject) {
      const rows = await db.query(
        sql`SELECT 1 FROM jobs.job_queue t WHERE t.job_id = ${jobId} AND ${isJobOf(subject)}`,
      );
      return rows.length > 0;
    },
    notFound: jobNotFound,
  });
}

export const pauseProperties = {
  queue: Type.String({ examples: ['mail'] }),
  paused: Type.Boolean(),
  paused_at: nullable(Timestamp),
  paused_by: nullable(Type.String()),
  paused_reason: nullable(Type.String()),
};

export function presentPause(pause: Pause | null, masks: Masks): Readonly<Record<string, unknown>> {
  return {
    paused: pause !== null,
    paused_at: formatInstant(pause?.at ?? null),
    paused_by: pause?.by ?? null,
    paused_reason: masks.text(pause?.reason ?? null),
  };
}
