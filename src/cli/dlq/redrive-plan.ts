import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { withProgress } from '../output/progress.ts';
import { sliceCommand } from '../slice/api-command.ts';
import type { Input, Values } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import { listenForStop } from '../run-until-signal.ts';
import { canaryInputs, canaryOf } from './canary.ts';
import {
  example,
  restMs,
  printRedrive,
  readRedrive,
  reason,
  redriveId,
  showRoute,
  type Redrive,
} from './redrive-view.ts';

function rate(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value < 0.1 || value > 100_000)
    throw new InvalidArgumentError('Must be a number from 0.1 to 100000.');
  return value;
}

function rateOrNone(text: string): number | 'none' {
  return text.toLowerCase() === 'none' ? 'none' : rate(text);
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
  ...timeInputs('only messages stored'),
];

export const plan = sliceCommand(
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
    const stopAsked = terminal.interrupted ?? listenForStop();
    const planned = await withProgress(terminal, { label: 'planning', isQuiet: false }, () =>
      untilPlanned(session, id, stopAsked),
    );
    printRedrive(planned, session);
    if (planned.state === 'awaiting_approval')
      session.print.note(
        `a second person approves it with \`redrive dlq redrive approve ${id} --reason …\`; it expires after a day`,
      );
    else if (planned.state === 'planned')
      session.print.note(`\`redrive dlq redrive start ${id}\` starts it; it expires after a day`);
    else if (planned.state === 'planning')
      session.print.note(
        `redrive ${id} is still being planned: \`redrive dlq redrive show ${id}\` shows it, \`cancel\` ends it`,
      );
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

/** Or until Ctrl-C: the server continues to plan. */
async function untilPlanned(session: ApiSession, id: string, stopAsked: AbortSignal): Promise<Redrive> {
  for (;;) {
    const startedMs = performance.now();
    const redrive = await readRedrive(session, id);
    if (redrive.state !== 'planning' || stopAsked.aborted) return redrive;
    await sleep(restMs(startedMs), undefined, { signal: stopAsked }).catch(() => {});
  }
}

export const pace = sliceCommand(
  {
    name: 'pace',
    description: 'change the rate of a redrive, also while it runs',
    route: 'PATCH /api/v1/dlq/redrives/{id}',
    inputs: [
      redriveId,
      {
        flags: '<rate>',
        text: 'messages per second, from 0.1 to 100000, or none for no limit',
        parse: rateOrNone,
      },
      reason,
    ],
    examples: [`redrive dlq redrive pace ${example} 50`, `redrive dlq redrive pace ${example} none`],
  },
  async (session, values) => {
    const { id, rate: given, reason: why } = values;
    const { etag } = await session.call<Redrive>(requestOf(showRoute, [], { id }));
    const call = requestOf('PATCH /api/v1/dlq/redrives/{id}', [], { id });
    const rate_per_second = given === 'none' ? null : given;
    const input = { ...call.input, rate_per_second, reason: why };
    const answer = await session.call<Redrive>({ ...call, input, ifMatch: etag });
    session.show(answer, ({ state, options: { rate_per_second: now } }) =>
      session.print.line(
        `${String(id)} ${escapeText(state)}, ${now === null ? 'no limit' : `${now} per second`}`,
      ),
    );
  },
);

export const canary = sliceCommand(
  {
    name: 'canary',
    description: 'change the canary of a redrive that was not started yet',
    route: 'PATCH /api/v1/dlq/redrives/{id}',
    inputs: [
      redriveId,
      ...canaryInputs,
      {
        flags: '--none',
        text: 'send everything at once',
        conflicts: ['canary', 'watchSeconds', 'stopPercent'],
      },
      reason,
    ],
    examples: [
      `redrive dlq redrive canary ${example} --canary 1,10 --stop-percent 5`,
      `redrive dlq redrive canary ${example} --none`,
    ],
  },
  async (session, values) => {
    const { id, none, reason: why } = values;
    const wanted = canaryOf(values);
    if (wanted === undefined && none !== true)
      throw new UsageError('nothing to change: give --canary, --watch-seconds, --stop-percent or --none');
    const { etag, value } = await session.call<Redrive>(requestOf(showRoute, [], { id }));
    const call = requestOf('PATCH /api/v1/dlq/redrives/{id}', [], { id });
    const changed = none === true ? null : { ...value.options.canary, ...wanted };
    const input = { ...call.input, canary: changed, reason: why };
    const answer = await session.call<Redrive>({ ...call, input, ifMatch: etag });
    session.show(answer, (redrive) => printRedrive(redrive, session));
  },
);
