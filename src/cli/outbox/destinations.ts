import { numberColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';

type Destination = Readonly<{
  name: string;
  configured: boolean;
  type: string | null;
  idempotency: string | null;
  throttle: Readonly<{ rate_per_second: number | null; held_until: string | null }> | null;
  /** Only an open circuit has a reason. */
  circuit: Readonly<{ state: string; reason?: string | null; next_probe_at?: string | null }> | null;
  lag_seconds: number | null;
  waiting: number;
  needs_attention: number;
  waiting_is_lower_bound?: true;
  in_flight: Readonly<{ here: number; all: number }>;
}>;

const sending = 'sending';

const columns: readonly Column<Destination>[] = [
  textColumn('NAME', ({ name }) => name, 12),
  textColumn('TYPE', ({ type }) => type),
  textColumn('IDEMPOTENCY', ({ idempotency }) => idempotency),
  numberColumn('WAITING', ({ waiting, waiting_is_lower_bound }) =>
    waiting_is_lower_bound === true ? `>= ${waiting}` : waiting,
  ),
  numberColumn('LAG', ({ lag_seconds }) => (lag_seconds === null ? null : `${Math.round(lag_seconds)}s`)),
  numberColumn('DEAD', ({ needs_attention: dead }) => dead),
  numberColumn('IN FLIGHT', ({ in_flight }) => in_flight.all),
  {
    title: 'STATE',
    text: stateOf,
    tone: (destination) => (stateOf(destination) === sending ? 'good' : 'bad'),
    minWidth: 12,
  },
];

export const destinations = apiCommand({
  name: 'destinations',
  description: 'list destinations with waiting orders, circuit and throttle',
  route: 'GET /api/v1/outbox/destinations',
  examples: ['redrive outbox destinations'],
  print: rowsAs<Destination>(
    'destinations',
    columns,
    'no destinations: see outbox.destinations in docs/reference/configuration.md',
  ),
});

/** Why orders are not sent, the strongest reason first. */
function stateOf({ configured, throttle, circuit }: Destination): string {
  if (!configured) return 'not configured on this server';
  if (circuit !== null && circuit.state !== 'closed') {
    const { state, reason, next_probe_at } = circuit;
    return `circuit ${state}: ${reason ?? 'unknown'}${next_probe_at == null ? '' : `, next probe ${next_probe_at}`}`;
  }
  if (throttle === null) return sending;
  const { rate_per_second: rate, held_until: until } = throttle;
  const limits = [
    rate === null ? null : `at most ${Number(rate.toFixed(1))}/s`,
    until === null ? null : `paused until ${until}`,
  ];
  return `throttled: ${limits.filter((limit) => limit !== null).join(', ')}`;
}
