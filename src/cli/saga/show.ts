import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { instantFact, showFacts, showJson, showTitle, type Fact } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { statusOf, toneOf, type Saga } from './saga-answer.ts';

type StepLog = Readonly<{
  step_name: string;
  action: string;
  status: string | null;
  error_message: string | null;
  started_at: string | null;
  attempt: number;
  actor?: string;
  reason?: string | null;
}>;

type ToldSaga = Readonly<{ saga: Saga; step_logs: readonly StepLog[] }>;

export function addShowCommand(saga: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      saga.command('show').description('one saga with its payload and every attempt at its steps'),
    ).argument('<id>', "the saga's id"),
    'redrive saga show 1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11',
  ).action(async (id: string, args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'sagas');
    const { print, now } = session;
    session.show(await session.call<ToldSaga>({ path: [id] }), (told) => {
      showFacts(print, factsOf(told.saga, now));
      showJson(print, 'payload', told.saga.payload);
      if (told.step_logs.length === 0) return;
      showTitle(print, 'attempts');
      print.table(columns, told.step_logs.toSorted(byStart));
    });
  });
}

/** The API has them by step; a story is told as it went. */
function byStart(a: StepLog, b: StepLog): number {
  return (a.started_at ?? '').localeCompare(b.started_at ?? '');
}

const columns: readonly Column<StepLog>[] = [
  { title: 'STARTED', text: ({ started_at }) => started_at ?? '-' },
  {
    title: 'STEP',
    text: ({ step_name, action }) => (action === 'EXECUTE' ? step_name : `undo ${step_name}`),
  },
  { title: 'ATTEMPT', text: ({ attempt }) => String(attempt), align: 'right' },
  { title: 'STATUS', text: ({ status }) => status ?? '(under way)' },
  { title: 'BY', text: ({ actor }) => actor ?? '' },
  { title: 'WHY', text: whyOf, minWidth: 12 },
];

/** What went wrong, and what a person said to it. */
function whyOf({ error_message, reason }: StepLog): string {
  return [error_message, reason].filter((text) => typeof text === 'string' && text !== '').join('; ');
}

function factsOf(saga: Saga, now: Date): readonly Fact[] {
  const { stuck } = saga;
  const where =
    stuck === undefined ? null : `${stuck.action === 'EXECUTE' ? '' : 'undo '}${stuck.step ?? '?'}`;
  return [
    ['id', saga.saga_id],
    ['workflow', saga.workflow_name],
    ['status', statusOf(saga), saga.needs_person ? 'bad' : toneOf(saga.status)],
    ['stuck at', where, 'bad'],
    ['because', stuck?.reason ?? null],
    ['go on with', stuck === undefined ? null : 'redrive saga retry, skip or resolve'],
    ['next step', String(saga.current_step)],
    ['undone because', saga.error_message],
    ['compensation', saga.compensation === 'none' ? null : saga.compensation],
    ['correlation id', saga.correlation_id],
    ['initiated by', saga.initiated_by],
    ['created', instantFact(saga.created_at, now)],
    ['changed', instantFact(saga.updated_at, now)],
    ['deadline', instantFact(saga.deadline_at, now)],
    ['definition', saga.definition_hash],
  ];
}
