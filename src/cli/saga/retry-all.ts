import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { confirm, requireTerminal } from '../confirm.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { ageColumn, lastColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { sliceCommand } from '../slice/api-command.ts';
import { nameOf, type Input, type Values } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { sagaIds, stepText } from './saga-status.ts';

type Sample = Readonly<{
  saga_id: string;
  workflow_name: string;
  step: string;
  action: string;
  reason: string;
  stuck_at: string | null;
}>;
type Preview = Readonly<{
  matched: number;
  has_more: boolean;
  not_retryable: number;
  sample: readonly Sample[];
}>;
type Retried = Readonly<{
  retried: number;
  skipped: number;
  skipped_sagas: readonly Readonly<{ saga_id: string; reason: string }>[];
  remaining: number;
  has_more: boolean;
}>;

const defaultLimit = 1000;
/** The server takes up to 10 s to search and 20 s to retry. */
const timeoutMs = 60_000;

const filters: readonly Input[] = [
  { flags: '--workflow <name>', text: 'sagas of this workflow', field: 'workflow_name' },
  { flags: '--step <name>', text: 'sagas stuck at this step' },
  {
    flags: '--action <action>',
    text: 'sagas stuck at an action, or at an undo',
    choices: ['EXECUTE', 'COMPENSATE'],
  },
  {
    flags: '--error-class <class>',
    text: 'sagas whose last attempt ended with this error class',
    choices: ['refused', 'defect', 'unknown', 'unserved', 'unavailable'],
  },
  ...timeInputs('sagas started', { since: 'created_from', until: 'created_to' }),
  ...timeInputs('sagas that got stuck', { name: 'stuck-', since: 'stuck_from', until: 'stuck_to' }),
];
const ids: Input = {
  flags: '[ids...]',
  text: 'saga ids; or select sagas with the options',
  field: 'saga_ids',
  ids: sagaIds,
};
const inputs: readonly Input[] = [
  ids,
  ...filters,
  {
    flags: '--limit <number>',
    text: `maximum number of sagas (default: ${defaultLimit})`,
    parse: wholeNumber(1, 10_000),
  },
  { flags: '--preview', text: 'only show what would be retried' },
  { flags: '--reason <text>', text: 'reason, for the history' },
  { flags: '-y, --yes', text: 'do not ask for confirmation', field: null },
];

export const retryAll = sliceCommand(
  {
    name: 'retry-all',
    route: 'POST /api/v1/sagas/retry',
    description: 'retry all matching stuck sagas, with all their attempts',
    inputs,
    examples: [
      'redrive saga retry-all --workflow place-order --action COMPENSATE --preview',
      "redrive saga retry-all --workflow place-order --reason 'the stock service is back'",
    ],
  },
  async (session, { preview, reason, limit = defaultLimit, ...values }, terminal) => {
    const selected = selectedBy(values);
    const request = (more: Values) => ({
      ...requestOf('POST /api/v1/sagas/retry', inputs, { ...selected, ...more }),
      timeoutMs,
    });
    const search = () => session.call<Preview>(request({ preview: true }));
    if (preview === true) return session.show(await search(), (found) => printPreview(found, session));
    if (reason === undefined) throw new UsageError('--reason is missing');
    if (values['yes'] !== true) await askFor((await search()).value, Number(limit), session, terminal);
    const answer = await session.call<Retried>(request({ reason, limit }));
    session.show(answer, (retried) => printRetried(retried, session));
  },
);

function selectedBy(values: Values): Values {
  const given = values['ids'] as readonly string[];
  if (given.length > 0) return values;
  if (filters.every((filter) => values[nameOf(filter)] === undefined))
    throw new UsageError(
      'no sagas selected: give saga ids, --workflow, --step, --action, --error-class, --since, --until, --stuck-since or --stuck-until',
    );
  return { ...values, ids: undefined };
}

async function askFor(found: Preview, limit: number, session: ApiSession, terminal: Terminal): Promise<void> {
  if (found.matched <= 1) return;
  requireTerminal(terminal);
  printPreview(found, session);
  const count = found.matched > limit ? `${limit} of ${countOf(found)}` : countOf(found);
  if (await confirm(terminal, `Retry ${count} sagas?`)) return;
  session.print.note('nothing was retried');
  throw new SilentFailure();
}

const sampleColumns: readonly Column<Sample>[] = [
  textColumn('ID', ({ saga_id }) => saga_id),
  textColumn('WORKFLOW', ({ workflow_name }) => workflow_name, 10),
  textColumn('STUCK AT', ({ step, action }) => stepText(step, action), 8),
  ageColumn('SINCE', ({ stuck_at }) => stuck_at),
  lastColumn('REASON', ({ reason }) => reason),
];

function printPreview(found: Preview, { print }: ApiSession): void {
  if (found.sample.length > 0) print.table(sampleColumns, found.sample);
  print.note(`${countOf(found)} sagas match`);
  if (found.not_retryable > 0)
    print.note(
      `${found.not_retryable} of them would be skipped: they have no undo, or their service must not be called twice`,
    );
}

function countOf({ matched, has_more }: Preview): string {
  return `${has_more ? 'more than ' : ''}${matched}`;
}

function printRetried(done: Retried, { print }: ApiSession): void {
  print.line(`retried ${done.retried === 1 ? '1 saga' : `${done.retried} sagas`}`);
  for (const { saga_id, reason } of done.skipped_sagas)
    print.note(`skipped ${saga_id}: ${escapeText(reason)}`);
  const unlisted = done.skipped - done.skipped_sagas.length;
  if (unlisted > 0) print.note(`skipped ${unlisted} more`);
  if (!done.has_more) return;
  const more = done.remaining > 0 ? `at least ${done.remaining} more sagas match` : 'more sagas may match';
  print.note(`${more}: run the command again`);
}
