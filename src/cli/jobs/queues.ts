import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';

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
    counts: Readonly<Record<'pending' | 'running' | 'failed' | 'completed' | 'dead_letter', number>>;
    estimated_counts?: readonly string[];
    unresolved: number;
    lag_seconds: number | null;
  }>;

export function addQueueCommands(jobs: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(jobs.command('queues').description('every queue: what is in it, and what holds it')),
    'redrive jobs queues',
  ).action(async (args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'jobs');
    const { print } = session;
    const answer = await session.call<Readonly<{ queues: readonly Queue[] }>>({ path: ['queues'] });
    session.show(answer, ({ queues }) =>
      queues.length === 0
        ? print.note('no queue has a job, and none is configured')
        : print.table(columnsFor(print), queues),
    );
  });

  addHold('pause', 'let no job of a queue begin; what runs runs on', "'the summariser is down'");
  addHold('resume', 'let the jobs of a paused queue begin again', "'it is back'");

  function addHold(name: 'pause' | 'resume', description: string, reason: string): void {
    withExamples(
      withApiOptions(jobs.command(name).description(description))
        .argument('<queue>', 'which queue')
        .option('--reason <text>', 'why'),
      `redrive jobs ${name} summarize --reason ${reason}`,
    ).action(async (queue: string, args: ApiArgs & Readonly<{ reason?: string }>) => {
      const session = openApiSession(terminal, args, 'jobs');
      const path = ['queues', queue, name];
      const answer = await session.call<Pause>({ method: 'POST', path, body: { reason: args.reason } });
      session.show(answer, (pause) => session.print.line(`${pause.queue} ${stateOf(pause)}`));
    });
  }
}

const running = 'runs';

function columnsFor(print: Printer): readonly Column<Queue>[] {
  const count = (title: string, status: keyof Queue['counts']): Column<Queue> => ({
    title,
    text: ({ counts, estimated_counts }) =>
      `${estimated_counts?.includes(status) === true ? '~' : ''}${counts[status]}`,
    align: 'right',
  });
  return [
    { title: 'QUEUE', text: ({ queue }) => queue, minWidth: 10 },
    { title: 'DONE BY', text: ({ has_target }) => (has_target ? 'push' : 'workers') },
    count('PENDING', 'pending'),
    count('RUNNING', 'running'),
    count('FAILED', 'failed'),
    count('COMPLETED', 'completed'),
    { title: 'DEAD', text: ({ unresolved }) => String(unresolved), align: 'right' },
    {
      title: 'LAG',
      text: ({ lag_seconds }) => (lag_seconds === null ? '-' : `${Math.round(lag_seconds)}s`),
      align: 'right',
    },
    {
      title: 'STATE',
      text: stateOf,
      paint: (cell, queue) => print.paint(queue.paused ? 'bad' : 'good', cell),
      minWidth: 10,
    },
  ];
}

function stateOf({ paused, paused_by, paused_reason }: Pause): string {
  if (!paused) return running;
  const by = paused_by === null ? '' : ` by ${escapeText(paused_by)}`;
  return `paused${by}${paused_reason === null ? '' : `: ${escapeText(paused_reason)}`}`;
}
