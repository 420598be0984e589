import { Type, type TSchema } from 'typebox';
import { passes } from '../../kernel/access/scope.ts';
import { formatInstant, formatTimestamp } from '../../kernel/timestamp.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { AsOf, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { CronJob } from '../domain/cron-schedule.ts';
import { statuses } from '../domain/job.ts';
import { root } from '../route-parts.ts';
import { openCronJobs } from './fire-cron.ts';
import { listSchedules, type LastRun, type ListedSchedule } from './list-schedules.ts';

export function addScheduleRoutes(
  app: HttpApp,
  { db, cron }: Readonly<{ db: Queryable; cron: readonly CronJob[] }>,
): void {
  const opened = openCronJobs(cron);
  app.get(
    `${root}/schedules`,
    {
      config: { access: { permission: 'jobs:queues:view', scope: { by: 'queues', in: 'list' } } },
      schema: {
        operationId: 'listSchedules',
        summary: 'List schedules with their next and last runs',
        description: 'Shows the schedules of the configuration of the process that answers.',
        response: { 200: SchedulesSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const shown = opened.filter(({ job }) => passes(names, job.queue));
      const { now, schedules } = await listSchedules(db, shown);
      return reply.send({ schedules: schedules.map(presentSchedule), as_of: formatTimestamp(now) });
    },
  );
}

function presentSchedule({ job, nextAt, dueAt, isKnown, last }: ListedSchedule): object {
  return {
    name: job.name,
    schedule: job.schedule,
    time_zone: job.timeZone,
    queue: job.queue,
    priority: job.priority,
    max_retries: job.maxRetries,
    known: isKnown,
    next_at: formatInstant(nextAt),
    due_at: formatInstant(dueAt),
    last: last === null ? null : presentRun(last),
  };
}

function presentRun({ tickAt, firedAt, jobId, status }: LastRun): object {
  return {
    tick_at: formatInstant(tickAt),
    fired_at: formatInstant(firedAt),
    job_id: jobId,
    status,
  };
}

/** Response schemas only document; the functions above define the fields. */
const SchedulesSchema: TSchema = Type.Object({
  schedules: Type.Array(
    Type.Object(
      {
        name: Type.String({ examples: ['nightly-report'] }),
        schedule: Type.String({
          examples: ['0 3 * * *'],
          description: 'Minute, hour, day, month, weekday.',
        }),
        time_zone: Type.String({ examples: ['Europe/Berlin'] }),
        queue: Type.String({ examples: ['reports'] }),
        priority: Type.Integer(),
        max_retries: nullable(Type.Integer({ description: 'Null: as the queue says.' })),
        known: Type.Boolean({
          description: 'A process with the role `workers` has seen it; until then it does not run.',
        }),
        next_at: nullable(Timestamp),
        due_at: nullable(
          Type.String({
            format: 'date-time',
            description: 'The tick that has come, and that no process has fired yet.',
          }),
        ),
        last: nullable(
          Type.Object({
            tick_at: Timestamp,
            fired_at: Timestamp,
            job_id: Type.String({ format: 'uuid' }),
            status: nullable(
              Type.Enum([...statuses], { description: 'Null if the job has been deleted since.' }),
            ),
          }),
        ),
      },
      { title: 'Schedule' },
    ),
    { description: 'By name.' },
  ),
  as_of: AsOf,
});
