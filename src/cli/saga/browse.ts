import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts, showJson, showRows, type Fact } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand } from '../slice/api-command.ts';
import type { ApiSession } from '../api/api-session.ts';
import { noteMasks } from '../slice/note-masks.ts';
import { revealCommand } from '../slice/reveal-command.ts';
import type { Input } from '../slice/define-command.ts';
import { facetsCommand } from '../slice/facets-command.ts';
import { listCommand } from '../slice/list-command.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import {
  sagaId,
  statusColumn,
  statuses,
  statusOf,
  stepText,
  toneOf,
  type Saga,
  type SagaStep,
} from './saga-status.ts';

type StepLog = Readonly<{
  step_name: string;
  action: string;
  status: string | null;
  error_message: string | null;
  started_at: string | null;
  attempt: number;
  actor?: string;
  reason?: string | null;
  masked?: true;
}>;

const filters: readonly Input[] = [
  { flags: '--workflow <name>', text: 'only sagas of this workflow', field: 'workflow_name' },
  { flags: '--status <status>', text: 'only sagas in this status', choices: statuses },
  { flags: '--step <name>', text: 'only sagas that stand at this step' },
  { flags: '--correlation-id <id>', text: 'only sagas with this correlation id' },
  { flags: '--key <key>', text: 'only the saga that was started with this idempotency key' },
  { flags: '--definition-hash <hash>', text: 'only sagas that keep this definition' },
  { flags: '--waiting-for <service>', text: 'only sagas that wait for this service' },
  { flags: '--fingerprint <fingerprint>', text: 'only sagas stuck at or undone for this failure' },
  { flags: '--needs-attention', text: 'only sagas that need attention' },
  ...timeInputs('only sagas started'),
];

export const list = listCommand<Saga>({
  name: 'list',
  description: 'list sagas, newest first',
  route: 'GET /api/v1/sagas',
  items: 'sagas',
  inputs: filters,
  examples: [
    'redrive saga list --needs-attention',
    'redrive saga list --workflow place-order --status FAILED',
  ],
  unused: ['payload', 'steps'],
  columns: [
    textColumn('ID', ({ saga_id }) => saga_id),
    statusColumn,
    optional(numberColumn('STEP', ({ current_step }) => current_step)),
    ageColumn('AGE', ({ created_at }) => created_at),
    textColumn('WORKFLOW', ({ workflow_name }) => workflow_name, 8),
    lastColumn('REASON', ({ stuck, error_message }) => stuck?.reason ?? error_message),
  ],
});

export const facets = facetsCommand({
  description: 'count sagas by status, workflow, step and the service that they wait for',
  route: 'GET /api/v1/sagas/facets',
  items: 'sagas',
  inputs: filters,
  examples: ['redrive saga facets', 'redrive saga facets --needs-attention'],
});

type SagaDetails = Readonly<{ saga: Saga; step_logs: readonly StepLog[] }>;

export const show = apiCommand<SagaDetails>({
  name: 'show',
  description: 'show a saga with its payload and all attempts at its steps',
  route: 'GET /api/v1/sagas/{id}',
  inputs: [sagaId],
  examples: ['redrive saga show 1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11'],
  print(found, session) {
    printSaga(found, session);
    const { saga, step_logs } = found;
    const masked = [saga, ...step_logs].find((each) => each.masked === true);
    noteMasks(session.print, masked ?? {}, `redrive saga reveal ${saga.saga_id}`);
  },
});

export const reveal = revealCommand<SagaDetails>({
  description: 'show a saga with what is masked elsewhere',
  route: 'POST /api/v1/sagas/{id}/reveal',
  inputs: [sagaId],
  examples: ["redrive saga reveal 1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11 --reason 'ticket 4711'"],
  print: printSaga,
});

function printSaga({ saga, step_logs }: SagaDetails, { print, now }: ApiSession): void {
  showFacts(print, factsOf(saga, now));
  showRows(print, 'steps', stepColumns, saga.steps ?? []);
  showJson(print, 'payload', saga.payload);
  // The API sorts them by step.
  const byStart = step_logs.toSorted((a, b) => (a.started_at ?? '').localeCompare(b.started_at ?? ''));
  showRows(print, 'attempts', logColumns, byStart);
}

const stepColumns: readonly Column<SagaStep>[] = [
  textColumn('STEP', ({ name, pivot }) => (pivot ? `${name} (pivot)` : name)),
  textColumn('STATE', ({ state }) => state.replaceAll('_', ' ')),
  textColumn('CALLS', ({ service, method }) => `${service} ${method}`, 12),
  lastColumn('UNDONE BY', ({ compensate }) => compensate ?? '(no undo)'),
];

const logColumns: readonly Column<StepLog>[] = [
  textColumn('STARTED', ({ started_at }) => started_at),
  textColumn('STEP', ({ step_name, action }) => stepText(step_name, action)),
  optional(numberColumn('ATTEMPT', ({ attempt }) => attempt)),
  textColumn('STATUS', ({ status }) => status ?? '(in progress)'),
  optional(textColumn('BY', ({ actor }) => actor ?? '')),
  lastColumn('REASON', ({ error_message, reason }) =>
    [error_message, reason].filter((text) => typeof text === 'string' && text !== '').join('; '),
  ),
];

function factsOf(saga: Saga, now: Date): readonly Fact[] {
  const { stuck } = saga;
  return [
    ['id', saga.saga_id],
    ['workflow', saga.workflow_name],
    ['status', statusOf(saga), toneOf(saga)],
    ['stuck at', stuck === undefined ? null : stepText(stuck.step ?? '?', stuck.action), 'bad'],
    ['stuck because', stuck?.reason ?? null],
    ['to continue', stuck === undefined ? null : 'run redrive saga retry, skip or resolve'],
    ['next step', String(saga.current_step)],
    ['next attempt', instantFact(saga.next_attempt_at ?? null, now)],
    ['compensated because', saga.error_message],
    ['fingerprint', saga.fingerprint],
    ['compensation', saga.compensation === 'none' ? null : saga.compensation],
    ['correlation id', saga.correlation_id],
    ['initiated by', saga.initiated_by],
    ['started by', saga.created_by ?? null],
    ['created', instantFact(saga.created_at, now)],
    ['updated', instantFact(saga.updated_at, now)],
    ['deadline', instantFact(saga.deadline_at, now)],
    ['definition', saga.definition_hash],
    ['trace id', saga.trace_id ?? null],
  ];
}
