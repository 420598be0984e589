import { escapeText } from '../../kernel/escape-text.ts';
import { numberColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs, type AddCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';

type Pause = Readonly<{
  queue: string;
  paused: boolean;
  paused_by: string | null;
  paused_reason: string | null;
}>;

type Queue = Pause &
  Readonly<{
    configured: boolean;
    has_target: boolean;
    target_down: Readonly<{ since: string; reason: string }> | null;
    counts: Readonly<Record<'pending' | 'running' | 'failed' | 'completed' | 'dead_letter', number>>;
    estimated_counts?: readonly string[];
    unresolved: number;
    lag_seconds: number | null;
  }>;

const running = 'running';

const count = (title: string, status: keyof Queue['counts']): Column<Queue> =>
  numberColumn(title, ({ counts, estimated_counts }) =>
    estimated_counts?.includes(status) === true ? `~${counts[status]}` : counts[status],
  );

const columns: readonly Column<Queue>[] = [
  textColumn('QUEUE', ({ queue }) => queue, 10),
  textColumn('RUN BY', ({ has_target }) => (has_target ? 'push' : 'workers')),
  count('PENDING', 'pending'),
  count('RUNNING', 'running'),
  count('FAILED', 'failed'),
  count('COMPLETED', 'completed'),
  numberColumn('DEAD', ({ unresolved }) => unresolved),
  numberColumn('LAG', ({ lag_seconds }) => (lag_seconds === null ? null : `${Math.round(lag_seconds)}s`)),
  {
    title: 'STATE',
    text: (queue) => (queue.paused ? pauseOf(queue) : targetStateOf(queue)),
    tone: ({ paused, target_down }) => (paused || target_down !== null ? 'bad' : 'good'),
    minWidth: 10,
  },
];

export const queues = apiCommand({
  name: 'queues',
  description: 'list queues with their jobs by status, lag and pause',
  route: 'GET /api/v1/jobs/queues',
  examples: ['redrive jobs queues'],
  print: rowsAs<Queue>('queues', columns, 'no queues: none is configured and none has a job'),
});

export const pause = pausing(
  'pause',
  'pause a queue: no new jobs start, running jobs finish',
  "'the summariser is down'",
  [{ flags: '--create', text: 'also if no such queue exists yet' }],
);
export const resume = pausing('resume', 'resume a paused queue', "'it is back'");

function pausing(
  name: 'pause' | 'resume',
  description: string,
  reason: string,
  more: readonly Input[] = [],
): AddCommand {
  return apiCommand<Pause>({
    name,
    description,
    route: `POST /api/v1/jobs/queues/{queue}/${name}`,
    inputs: [{ flags: '<queue>', text: 'queue name' }, { flags: '--reason <text>', text: 'reason' }, ...more],
    examples: [`redrive jobs ${name} summarize --reason ${reason}`],
    print: (answer, { print }) => print.line(`${answer.queue} ${pauseOf(answer)}`),
  });
}

function targetStateOf({ target_down: down }: Queue): string {
  return down === null ? running : `target down since ${down.since}: ${escapeText(down.reason)}`;
}

function pauseOf({ paused, paused_by, paused_reason }: Pause): string {
  if (!paused) return running;
  const by = paused_by === null ? '' : ` by ${escapeText(paused_by)}`;
  return `paused${by}${paused_reason === null ? '' : `: ${escapeText(paused_reason)}`}`;
}
