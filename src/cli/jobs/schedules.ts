import { lastColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';

type Schedule = Readonly<{
  name: string;
  schedule: string;
  time_zone: string;
  queue: string;
  known: boolean;
  next_at: string | null;
  due_at: string | null;
  last: Readonly<{ tick_at: string; job_id: string; status: string | null }> | null;
}>;

const columns: readonly Column<Schedule>[] = [
  textColumn('NAME', ({ name }) => name, 10),
  textColumn('SCHEDULE', ({ schedule, time_zone }) => `${schedule} ${time_zone}`, 10),
  textColumn('QUEUE', ({ queue }) => queue, 8),
  {
    title: 'NEXT',
    text: ({ known, due_at, next_at }) =>
      known ? (due_at === null ? (next_at ?? 'never') : `due since ${due_at}`) : 'no worker has seen it',
    tone: ({ known, due_at }) => (known && due_at === null ? 'good' : 'doubtful'),
    minWidth: 10,
  },
  textColumn('LAST', ({ last }) => last?.tick_at ?? null),
  lastColumn('LAST JOB', ({ last }) =>
    last === null ? null : `${last.job_id} ${last.status ?? '(deleted)'}`,
  ),
];

export const schedules = apiCommand({
  name: 'schedules',
  description: 'list schedules with their next and last runs',
  route: 'GET /api/v1/jobs/schedules',
  examples: ['redrive jobs schedules'],
  print: rowsAs<Schedule>('schedules', columns, 'no schedules are configured'),
});
