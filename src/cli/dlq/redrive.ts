import { setTimeout as sleep } from 'node:timers/promises';
import { escapeText } from '../../kernel/escape-text.ts';
import { SilentFailure } from '../exit-code.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { showFacts } from '../output/facts.ts';
import { withProgress } from '../output/progress.ts';
import { listenForStop } from '../run-until-signal.ts';
import { addSlice } from '../slice/add-slice.ts';
import { apiCommand, sliceCommand, type AddCommand } from '../slice/api-command.ts';
import { listCommand } from '../slice/list-command.ts';
import { placeOf } from './browse.ts';
import { watchLabel } from './canary.ts';
import { canary, pace, plan } from './redrive-plan.ts';
import {
  countFacts,
  example,
  restMs,
  printRedrive,
  readRedrive,
  reason,
  redriveId,
  showRoute,
  toneOf,
  type Redrive,
} from './redrive-view.ts';

const outcomes = [
  'waiting',
  'in_flight',
  'published',
  'not_published',
  'came_back',
  'failed',
  'unknown',
  'skipped',
  'cancelled',
  'applied',
];

const states = [
  'planning',
  'planned',
  'running',
  'paused',
  'stopped',
  'finished',
  'cancelled',
  'failed',
  'expired',
];

type Uncounted =
  | 'counts'
  | 'excluded'
  | 'overlaps'
  | 'targets'
  | 'groups_error'
  | 'fingerprints'
  | 'keys'
  | 'rate_now'
  | 'eta_seconds'
  | 'came_back_after';

type ListedRedrive = Omit<Redrive, Uncounted> & Readonly<{ selected: number }>;

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
    { flags: '--state <state>', text: 'only redrives in this state', choices: states },
    { flags: '--policy <name>', text: 'only redrives that this retry policy has made' },
    { flags: '--automatic <bool>', text: 'only those of policies, or of people', choices: ['true', 'false'] },
  ],
  examples: ['redrive dlq redrive list', 'redrive dlq redrive list --automatic false'],
  unused: ['options', 'owner'],
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

type Item = Readonly<{
  position: number;
  message_id: string;
  target: string;
  outcome: string;
  attempt: number | null;
  partition: number | null;
  offset: number | null;
  reason: string | null;
  settled_at: string | null;
}>;

const items = listCommand<Item>({
  name: 'items',
  description: 'list the messages of a redrive in the order of sending, each with its outcome',
  route: 'GET /api/v1/dlq/redrives/{id}/items',
  items: 'items',
  inputs: [
    redriveId,
    { flags: '--outcome <outcome>', text: 'only messages with this outcome', choices: outcomes },
  ],
  examples: [
    `redrive dlq redrive items ${example}`,
    `redrive dlq redrive items ${example} --outcome came_back --all --json | jq -r .items[].message_id`,
  ],
  unused: [],
  columns: [
    numberColumn('POSITION', ({ position }) => position),
    textColumn('MESSAGE', ({ message_id }) => message_id),
    textColumn('OUTCOME', ({ outcome }) => outcome),
    optional(ageColumn('AGE', ({ settled_at }) => settled_at)),
    optional(numberColumn('ATTEMPT', ({ attempt }) => attempt)),
    textColumn('TO', ({ target, partition, offset }) => placeOf(target, partition, offset), 12),
    lastColumn('REASON', ({ reason }) => reason),
  ],
});

const requiredReason = {
  flags: '--reason <text>',
  text: 'reason, for the record',
  isRequired: true,
} as const;

type CommandName = 'approve' | 'start' | 'pause' | 'resume' | 'cancel';

function change(name: CommandName, description: string): AddCommand {
  return apiCommand<Redrive>({
    name,
    description,
    route: `POST /api/v1/dlq/redrives/{id}/${name}`,
    inputs: [redriveId, name === 'approve' ? requiredReason : reason],
    examples: [
      `redrive dlq redrive ${name} ${example}${name === 'approve' ? " --reason 'the plan is right'" : ''}`,
    ],
    print({ id, state, counts }, { print }) {
      const { in_flight: inFlight = 0 } = counts;
      print.line(`${id} ${print.paint(toneOf({ state }), escapeText(state))}`);
      if (inFlight > 0 && state !== 'running') print.note(`${inFlight} messages in flight are still settled`);
      if (name === 'approve') print.note(`approved; \`redrive dlq redrive start ${id}\` starts it`);
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
      secondsLeft: () => last.eta_seconds,
      isQuiet: values['json'] === true,
    };
    await withProgress(terminal, progress, async () => {
      let rest = restMs(performance.now());
      while (isMoving(last) && !stopAsked.aborted) {
        await sleep(rest, undefined, { signal: stopAsked }).catch(() => {});
        const startedMs = performance.now();
        if (!stopAsked.aborted) last = await readRedrive(session, id);
        rest = restMs(startedMs);
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

export const redrive: AddCommand = (slice, terminal) =>
  addSlice(slice, terminal, {
    name: 'redrive',
    description: 'planned bulk retries and decisions: plan, start, follow, pause, cancel',
    examples: [
      "redrive dlq redrive plan orders.v1 --rate 200 --reason 'the consumer was fixed'",
      `redrive dlq redrive watch ${example}`,
    ],
    groups: {
      Read: [list, show, items, watch, receipt],
      Change: [
        plan,
        change('approve', 'approve a large plan of somebody else'),
        change('start', 'start a planned redrive'),
        pace,
        canary,
        change('pause', 'pause a running redrive; messages in flight are settled'),
        change('resume', 'resume a paused or stopped redrive'),
        change('cancel', 'cancel a redrive; messages in flight are settled'),
      ],
    },
  });
