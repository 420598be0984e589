import { escapeText } from '../../kernel/escape-text.ts';
import { lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts } from '../output/facts.ts';
import type { Column, Tone } from '../output/render-table.ts';
import { addSlice } from '../slice/add-slice.ts';
import { apiCommand, rowsAs, type AddCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';

type Policy = Readonly<{
  name: string;
  state: 'active' | 'paused' | 'disabled';
  state_reason: string | null;
  state_actor: string | null;
  state_at: string;
  configured: boolean;
  topics: readonly string[];
  error_classes: readonly string[] | null;
  fingerprints: readonly string[] | null;
  delay_seconds: number;
  backoff: number;
  max_attempts: number;
  rate_per_second: number;
  canary: Readonly<{ stages: readonly number[]; watch_seconds: number; stop_percent: number }> | null;
  waiting: number;
  due: number;
  next_attempt_at: string | null;
  redrive_id: string | null;
  last_redrive_id: string | null;
  last_round_at: string | null;
  last_result: string | null;
  failures: number;
  not_before: string | null;
}>;

const policyName: Input = { flags: '<name>', text: 'policy name, as in dlq.auto_retry' };

const columns: readonly Column<Policy>[] = [
  textColumn('POLICY', ({ name }) => name, 10),
  { title: 'STATE', text: stateOf, tone: toneOf },
  numberColumn('WAITING', ({ waiting }) => waiting),
  numberColumn('DUE', ({ due }) => due),
  optional(textColumn('TOPICS', ({ topics }) => topics.join(' '), 10)),
  lastColumn('LAST RESULT', ({ last_result }) => last_result),
];

const list = apiCommand({
  name: 'list',
  description: 'list retry policies with their state, in the order in which they apply',
  route: 'GET /api/v1/dlq/policies',
  examples: ['redrive dlq policies list'],
  print: rowsAs<Policy>('policies', columns, 'no retry policies: dlq.auto_retry is empty'),
});

const show = apiCommand<Policy>({
  name: 'show',
  description: 'show a retry policy: what it retries, and how its last round ended',
  route: 'GET /api/v1/dlq/policies/{name}',
  inputs: [policyName],
  examples: ['redrive dlq policies show timeouts'],
  print(policy, { print, now }) {
    const list = (values: readonly string[] | null): string => values?.join(', ') ?? 'all';
    showFacts(print, [
      ['name', policy.name],
      ['state', stateOf(policy), toneOf(policy)],
      ['state reason', reasonOf(policy)],
      ['topics', list(policy.topics)],
      ['error classes', list(policy.error_classes)],
      ['fingerprints', list(policy.fingerprints)],
      ['delay', `${policy.delay_seconds} s, x ${policy.backoff} for each attempt`],
      ['max attempts', String(policy.max_attempts)],
      ['rate', `${policy.rate_per_second} per second`],
      ['canary', canaryFact(policy)],
      ['waiting', `${policy.waiting}, ${policy.due} of them due`],
      ['next attempt', policy.due > 0 ? null : instantFact(policy.next_attempt_at, now)],
      ['not before', instantFact(policy.not_before, now)],
      ['last round', instantFact(policy.last_round_at, now)],
      ['last result', policy.last_result],
      ['redrive', policy.redrive_id ?? policy.last_redrive_id],
    ]);
  },
});

function change(name: 'pause' | 'resume', description: string, reason: string): AddCommand {
  return apiCommand<Policy>({
    name,
    description,
    route: `POST /api/v1/dlq/policies/{name}/${name}`,
    inputs: [policyName, { flags: '--reason <text>', text: 'reason, for the record', isRequired: true }],
    examples: [`redrive dlq policies ${name} timeouts --reason ${reason}`],
    print(policy, { print }) {
      print.line(`${escapeText(policy.name)} ${print.paint(toneOf(policy), stateOf(policy))}`);
      if (name === 'pause') print.note('its running redrive, if any, is paused as well');
    },
  });
}

function stateOf({ state, configured }: Policy): string {
  return configured ? state : `${state}, not configured`;
}

function canaryFact({ canary }: Policy): string | null {
  if (canary === null) return null;
  const { stages, watch_seconds: seconds, stop_percent: percent } = canary;
  return `${stages.join(', ')} messages, watched for ${seconds} s, stops above ${percent} %`;
}

function toneOf({ state, configured }: Policy): Tone {
  if (!configured) return 'faint';
  return state === 'active' ? 'good' : 'bad';
}

function reasonOf({ state, state_reason, state_actor }: Policy): string | null {
  if (state_reason === null) return null;
  return state === 'disabled' || state_actor === null ? state_reason : `${state_reason} (${state_actor})`;
}

export const policies: AddCommand = (slice, terminal) =>
  addSlice(slice, terminal, {
    name: 'policies',
    description: 'automatic retry: list, pause and resume its policies',
    examples: ['redrive dlq policies list'],
    groups: {
      Read: [list, show],
      Change: [
        change('pause', 'pause a policy: it sends nothing until it is resumed', "'the partner is down'"),
        change('resume', 'resume a paused or disabled policy', "'the consumer was fixed'"),
      ],
    },
  });
