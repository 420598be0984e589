import { outcomes } from '../../kernel/audit/act.ts';
import { lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import type { Tone } from '../output/render-table.ts';
import { listCommand } from '../slice/list-command.ts';
import { timeInputs } from '../slice/time-inputs.ts';

type AuditEvent = Readonly<{
  seq: number;
  at: string;
  actor_id: string;
  actor_name: string;
  action: string;
  outcome: string;
  reason: string | null;
  resource: string;
  item_count: number;
  roles: unknown;
  detail: unknown;
  topics: unknown;
  queues: unknown;
  destinations: unknown;
  workflows: unknown;
  request_id: unknown;
  trace_id: unknown;
  agent: unknown;
}>;

const tones: Readonly<Record<string, Tone>> = {
  success: 'good',
  failure: 'bad',
  denied: 'bad',
  unknown: 'doubtful',
};

export const list = listCommand<AuditEvent>({
  name: 'list',
  description: 'list who did what, when, why, and with which outcome, newest first',
  route: 'GET /api/v1/audit',
  items: 'events',
  inputs: [
    {
      flags: '--by <actor>',
      text: 'only of this actor: user:<issuer>|<subject>, key:<id>',
      field: 'actor',
    },
    { flags: '--action <permission>', text: 'only acts that needed this permission: dlq:messages:retry' },
    { flags: '--outcome <outcome>', text: 'only acts with this outcome', choices: outcomes },
    { flags: '--resource <name>', text: 'only acts on this: jobs/queues/mail' },
    { flags: '--operation <id>', text: 'only acts of this operation: a retry, a redrive' },
    ...timeInputs('only acts'),
  ],
  examples: [
    'redrive audit list',
    'redrive audit list --action dlq:messages:edit --since 7d',
    "redrive audit list --by 'user:https://idp.example.com|7f3c' --all --json | jq .events[].resource",
  ],
  unused: [
    'roles',
    'detail',
    'topics',
    'queues',
    'destinations',
    'workflows',
    'request_id',
    'trace_id',
    'agent',
  ],
  columns: [
    textColumn('AT', ({ at }) => at),
    { title: 'OUTCOME', text: ({ outcome }) => outcome, tone: ({ outcome }) => tones[outcome] },
    // Two people may have the same name.
    textColumn('ACTOR', ({ actor_id }) => actor_id, 10),
    optional(textColumn('NAME', ({ actor_name }) => actor_name, 6)),
    textColumn('ACTION', ({ action }) => action, 14),
    textColumn('RESOURCE', ({ resource }) => resource, 16),
    optional(numberColumn('ITEMS', ({ item_count }) => item_count)),
    lastColumn('REASON', ({ reason }) => reason),
  ],
});
