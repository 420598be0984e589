import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { openApiSession } from '../api/api-session.ts';

type Destination = Readonly<{
  name: string;
  configured: boolean;
  type: string | null;
  idempotency: string | null;
  throttle: Readonly<{ rate_per_second: number | null; held_until: string | null }> | null;
  /** Only an open one has a reason. */
  circuit: Readonly<{ state: string; reason?: string | null; next_probe_at?: string | null }> | null;
  lag_seconds: number | null;
  waiting: number;
  waiting_is_lower_bound?: true;
  in_flight: Readonly<{ here: number; all: number }>;
}>;

type Destinations = Readonly<{ destinations: readonly Destination[] }>;

const flowing = 'flows';

export function addDestinationsCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      outbox.command('destinations').description('where orders go, what waits, and what holds them back'),
    ),
    'redrive outbox destinations',
  ).action(async (args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'outbox');
    const { print } = session;
    session.show(await session.call<Destinations>({ path: ['destinations'] }), ({ destinations }) =>
      destinations.length === 0
        ? print.note('no destination is configured: see outbox.destinations in docs/operations.md')
        : print.table(columnsFor(print), destinations),
    );
  });
}

function columnsFor(print: Printer): readonly Column<Destination>[] {
  return [
    { title: 'NAME', text: ({ name }) => name, minWidth: 12 },
    { title: 'TYPE', text: ({ type }) => type ?? '-' },
    { title: 'IDEMPOTENCY', text: ({ idempotency }) => idempotency ?? '-' },
    {
      title: 'WAITING',
      text: ({ waiting, waiting_is_lower_bound }) =>
        `${waiting_is_lower_bound === true ? '>= ' : ''}${waiting}`,
      align: 'right',
    },
    {
      title: 'LAG',
      text: ({ lag_seconds }) => (lag_seconds === null ? '-' : `${Math.round(lag_seconds)}s`),
      align: 'right',
    },
    { title: 'IN FLIGHT', text: ({ in_flight }) => String(in_flight.all), align: 'right' },
    {
      title: 'STATE',
      text: stateOf,
      paint: (cell, destination) => print.paint(stateOf(destination) === flowing ? 'good' : 'bad', cell),
      minWidth: 12,
    },
  ];
}

/** What holds its orders back, the strongest first. */
function stateOf({ configured, throttle, circuit }: Destination): string {
  if (!configured) return 'not configured on this server';
  if (circuit !== null && circuit.state !== 'closed') {
    const { state, reason, next_probe_at } = circuit;
    return `circuit ${state}: ${reason ?? 'unknown'}${next_probe_at == null ? '' : `, next probe ${next_probe_at}`}`;
  }
  if (throttle === null) return flowing;
  const rate =
    throttle.rate_per_second === null ? null : `at most ${Number(throttle.rate_per_second.toFixed(1))}/s`;
  const pause = throttle.held_until === null ? null : `nothing before ${throttle.held_until}`;
  return `throttled: ${[rate, pause].filter((one) => one !== null).join(', ')}`;
}
