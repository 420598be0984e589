import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure } from '../exit-code.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts, showRows, type Fact } from '../output/facts.ts';
import { formatSeconds, withProgress } from '../output/progress.ts';
import type { Column, Tone } from '../output/render-table.ts';
import { listenForStop } from '../run-until-signal.ts';
import { addSlice } from '../slice/add-slice.ts';
import { apiCommand, sliceCommand, type AddCommand } from '../slice/api-command.ts';
import type { Input, Values } from '../slice/define-command.ts';
import { idInput } from '../slice/item-id.ts';
import { listCommand } from '../slice/list-command.ts';
import { requestOf } from '../slice/request-of.ts';
import { canaryFacts, canaryInputs, canaryOf, watchLabel, type Staged } from './canary.ts';

type Counts = Readonly<Record<string, number>>;

/** The fields of a redrive that the commands read. */
type Redrive = Staged &
  Readonly<{
    id: string;
    kind: string;
    state: string;
    state_reason: string | null;
    reason: string;
    actor: string;
    options: Readonly<{ rate_per_second: number | null; order: string; reopen?: boolean }>;
    came_back_after: number;
    counts: Counts;
    excluded: readonly Readonly<{ reason: string; count: number }>[];
    targets: readonly Readonly<{ topic: string; count: number; groups: readonly string[] }>[];
    fingerprints: readonly Readonly<{ fingerprint: string | null; count: number }>[];
    keys: Readonly<{ distinct: number; longest: number; without_key: number }> | null;
    rate_now: number | null;
    eta_seconds: number | null;
    created_at: string;
    started_at: string | null;
    finished_at: string | null;
    receipt: Readonly<{ sha256: string; counts: Counts }> | null;
  }>;

type ListedRedrive = Omit<
  Redrive,
  'counts' | 'excluded' | 'targets' | 'fingerprints' | 'keys' | 'rate_now' | 'eta_seconds' | 'came_back_after'
> &
  Readonly<{ selected: number }>;

const redriveId = idInput({ what: 'redrive', route: 'GET /api/v1/dlq/redrives/ids' });
const example = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
const showRoute = 'GET /api/v1/dlq/redrives/{id}';

function rate(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < 0.1 || value > 100_000)
    throw new InvalidArgumentError('Must be a number from 0.1 to 100000.');
  return value;
}

const planInputs: readonly Input[] = [
  { flags: '[topic]', text: 'only messages of this topic, by its original or dead-letter name' },
  {
    flags: '--status <status>',
    text: 'only messages in this status',
    choices: ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'],
  },
  { flags: '--fingerprint <fingerprint>', text: 'only messages with this fingerprint' },
  { flags: '--error-class <class>', text: 'only messages with this error class' },
  { flags: '--key <key>', text: 'only messages with this key' },
  { flags: '--consumer-group <group>', text: 'only messages of this consumer group' },
  { flags: '--text <words>', text: 'only messages with all these words in the error or the value' },
  { flags: '--since <time>', text: 'only messages stored at or after this time (ISO 8601 with zone)' },
  { flags: '--until <time>', text: 'only messages stored before this time (ISO 8601 with zone)' },
];

const plan = sliceCommand(
  {
    name: 'plan',
    description: 'select messages for a redrive; nothing is done before it is started',
    route: 'POST /api/v1/dlq/redrives',
    hasOwnProgress: true,
    inputs: [
      ...planInputs,
      {
        flags: '--kind <kind>',
        text: 'what to do with each message: retry, or a decision for all (default: retry)',
        choices: ['retry', 'reopen', 'dead', 'delete'],
      },
      {
        flags: '--rate <number>',
        text: 'messages per second, from 0.1 to 100000 (default: no limit)',
        parse: rate,
      },
      {
        flags: '--order <order>',
        text: 'key: skip the rest of a key behind a message that was not published (default: key)',
        choices: ['key', 'none'],
      },
      { flags: '--reopen', text: 'take dead messages and those without an attempt left too' },
      ...canaryInputs,
      { flags: '--reason <text>', text: 'reason, for the record', isRequired: true },
    ],
    examples: [
      "redrive dlq redrive plan orders.v1 --rate 200 --reason 'the consumer was fixed'",
      "redrive dlq redrive plan orders.v1 --kind dead --reason 'the orders were entered by hand'",
      "redrive dlq redrive plan orders.v1 --canary 1,5,25 --reason 'the consumer was fixed'",
    ],
  },
  async (session, values, terminal) => {
    const call = { ...requestOf('POST /api/v1/dlq/redrives', [], {}), input: planBody(values) };
    const answer = await session.call<Readonly<{ id: string }>>(call);
    if (values['json'] === true) return session.show(answer, () => {});
    const { id } = answer.value;
    const planned = await withProgress(terminal, { label: 'planning', isQuiet: false }, () =>
      untilPlanned(session, id),
    );
    printRedrive(planned, session);
    if (planned.state === 'planned')
      session.print.note(`\`redrive dlq redrive start ${id}\` starts it; it expires after a day`);
    else throw new SilentFailure();
  },
);

function planBody(values: Values): Readonly<Record<string, unknown>> {
  const { topic, status, fingerprint, errorClass, key, consumerGroup, text, since, until } = values;
  const { kind, rate: perSecond, order, reopen, reason } = values;
  const filter = {
    topic,
    status: status === undefined ? undefined : [status],
    fingerprint,
    error_class: errorClass,
    key,
    consumer_group: consumerGroup,
    text,
    since,
    until,
  };
  return { kind, filter, rate_per_second: perSecond, order, reopen, canary: canaryOf(values), reason };
}

/** Twice a second looks steady, and costs one read by primary key. */
const pollMs = 500;

async function untilPlanned(session: ApiSession, id: string): Promise<Redrive> {
  for (;;) {
    const redrive = await readRedrive(session, id);
    if (redrive.state !== 'planning') return redrive;
    await sleep(pollMs);
  }
}

async function readRedrive(session: ApiSession, id: string): Promise<Redrive> {
  return (await session.call<Redrive>(requestOf(showRoute, [], { id }))).value;
}

const show = apiCommand<Redrive>({
  name: 'show',
  description: 'show a redrive with its plan and counts',
  route: showRoute,
  inputs: [redriveId],
  examples: [`redrive dlq redrive show ${example}`],
  print: printRedrive,
});

const receipt = apiCommand<Redrive>({
  name: 'receipt',
  description: 'show how the messages of an ended redrive ended',
  route: showRoute,
  inputs: [redriveId],
  examples: [`redrive dlq redrive receipt ${example}`],
  print({ id, state, receipt: found }, { print }) {
    if (found === null) return print.note(`redrive ${id} is ${escapeText(state)}: it has no receipt yet`);
    showFacts(print, [['id', id], ['state', state], ...countFacts(found.counts), ['sha256', found.sha256]]);
  },
  isFailure: (redrive) => redrive.receipt === null,
});

const list = listCommand<ListedRedrive>({
  name: 'list',
  description: 'list redrives, newest first',
  route: 'GET /api/v1/dlq/redrives',
  items: 'redrives',
  inputs: [
    { flags: '--policy <name>', text: 'only redrives that this retry policy has made' },
    { flags: '--automatic <bool>', text: 'only those of policies, or of people', choices: ['true', 'false'] },
  ],
  examples: ['redrive dlq redrive list', 'redrive dlq redrive list --automatic false'],
  unused: ['options'],
  columns: [
    textColumn('ID', ({ id }) => id),
    textColumn('KIND', ({ kind }) => kind),
    { title: 'STATE', text: ({ state }) => state, tone: toneOf },
    numberColumn('MESSAGES', ({ selected }) => selected),
    ageColumn('AGE', ({ created_at }) => created_at),
    optional(textColumn('BY', ({ actor }) => actor, 8)),
    lastColumn('REASON', ({ reason }) => reason),
  ],
});

const reason: Input = { flags: '--reason <text>', text: 'reason, for the record' };

type CommandName = 'start' | 'pause' | 'resume' | 'cancel';

function change(name: CommandName, description: string): AddCommand {
  return apiCommand<Redrive>({
    name,
    description,
    route: `POST /api/v1/dlq/redrives/{id}/${name}`,
    inputs: [redriveId, reason],
    examples: [`redrive dlq redrive ${name} ${example}`],
    print({ id, state, counts }, { print }) {
      const { in_flight: inFlight = 0 } = counts;
      print.line(`${id} ${print.paint(toneOf({ state }), escapeText(state))}`);
      if (inFlight > 0 && state !== 'running') print.note(`${inFlight} messages in flight are still settled`);
      if (state === 'running') print.note(`\`redrive dlq redrive watch ${id}\` follows it`);
    },
  });
}

const watch = sliceCommand(
  {
    name: 'watch',
    description: 'follow a redrive until it ends; Ctrl-C leaves it running',
    route: showRoute,
    hasOwnProgress: true,
    inputs: [redriveId],
    examples: [`redrive dlq redrive watch ${example}`],
  },
  async (session, values, terminal) => {
    const id = String(values['id']);
    let last = await readRedrive(session, id);
    const stopAsked = terminal.interrupted ?? listenForStop();
    const progress = {
      get label() {
        return watchLabel(last);
      },
      unit: 'messages',
      total: last.counts['selected'],
      countDone: () => doneOf(last),
      perSecond: () => last.rate_now,
      isQuiet: values['json'] === true,
    };
    await withProgress(terminal, progress, async () => {
      while (isMoving(last) && !stopAsked.aborted) {
        await sleep(pollMs, undefined, { signal: stopAsked }).catch(() => {});
        if (!stopAsked.aborted) last = await readRedrive(session, id);
      }
    });
    if (values['json'] === true) session.print.json(JSON.stringify(last));
    else printRedrive(last, session);
    if (isMoving(last)) {
      session.print.note(`redrive ${id} goes on: \`redrive dlq redrive watch ${id}\` follows it,`);
      session.print.note(`\`redrive dlq redrive pause ${id}\` pauses it, \`cancel\` ends it`);
    } else if (last.state !== 'finished') throw new SilentFailure();
  },
);

/** Something will happen without a person. */
function isMoving({ state, receipt: found }: Redrive): boolean {
  return state === 'planning' || state === 'running' || (state === 'cancelled' && found === null);
}

function doneOf({ counts }: Redrive): number {
  const { selected = 0, waiting = 0, in_flight: inFlight = 0 } = counts;
  return selected - waiting - inFlight;
}

function printRedrive(redrive: Redrive, { print, now }: ApiSession): void {
  const { options, counts } = redrive;
  const { rate_per_second: limit } = options;
  showFacts(print, [
    ['id', redrive.id],
    ['kind', redrive.kind],
    ['state', redrive.state, toneOf(redrive)],
    ['state reason', redrive.state_reason],
    ['reason', `${redrive.reason} (${redrive.actor})`],
    ['rate', limit === null ? 'no limit' : `${limit} per second`],
    ['order', redrive.kind === 'retry' ? options.order : null],
    ['reopen', options.reopen === true ? 'dead messages and those without an attempt left' : null],
    ...canaryFacts(redrive),
    ['created', instantFact(redrive.created_at, now)],
    ['started', instantFact(redrive.started_at, now)],
    ['finished', instantFact(redrive.finished_at, now)],
    ...countFacts(counts),
    ...planFacts(redrive),
    ['sha256', redrive.receipt?.sha256 ?? null],
  ]);
  showRows(print, 'targets', targetColumns, redrive.targets);
  showRows(print, 'excluded', exclusionColumns, redrive.excluded);
}

const targetColumns: readonly Column<Redrive['targets'][number]>[] = [
  textColumn('TOPIC', ({ topic }) => topic, 12),
  numberColumn('MESSAGES', ({ count }) => count),
  lastColumn('CONSUMER GROUPS', ({ groups }) => groups.join(', ')),
];

const exclusionColumns: readonly Column<Redrive['excluded'][number]>[] = [
  textColumn('REASON', (exclusion) => exclusion.reason),
  numberColumn('MESSAGES', ({ count }) => count),
];

function planFacts({ state, keys, fingerprints, eta_seconds: seconds }: Redrive): readonly Fact[] {
  const isOpen = state === 'planned' || state === 'running';
  return [
    ['causes', fingerprints.length === 0 ? null : String(fingerprints.length)],
    [
      'keys',
      keys === null || keys.distinct === 0
        ? null
        : `${keys.distinct}, the longest has ${keys.longest} messages`,
    ],
    ['remaining time', seconds === null || !isOpen ? null : `about ${formatSeconds(seconds)}`],
  ];
}

/** Those that are not 0; `selected` always. */
function countFacts(counts: Counts): readonly Fact[] {
  return Object.entries(counts)
    .filter(([name, count]) => count > 0 || name === 'selected')
    .map(([name, count]) => [name.replaceAll('_', ' '), count.toLocaleString('en')]);
}

function toneOf({ state }: Readonly<{ state: string }>): Tone {
  if (state === 'finished') return 'good';
  return state === 'failed' || state === 'stopped' ? 'bad' : 'strong';
}

export const redrive: AddCommand = (slice, terminal) =>
  addSlice(slice, terminal, {
    name: 'redrive',
    description: 'planned bulk retries and decisions: plan, start, follow, pause, cancel',
    examples: [
      "redrive dlq redrive plan orders.v1 --rate 200 --reason 'the consumer was fixed'",
      `redrive dlq redrive watch ${example}`,
    ],
    groups: {
      Read: [list, show, watch, receipt],
      Change: [
        plan,
        change('start', 'start a planned redrive'),
        change('pause', 'pause a running redrive; messages in flight are settled'),
        change('resume', 'resume a paused or stopped redrive'),
        change('cancel', 'cancel a redrive; messages in flight are settled'),
      ],
    },
  });
