import { numberColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';

type Service = Readonly<{
  name: string;
  type: string;
  idempotent: boolean;
  circuit: string;
  since: string | null;
  reason: string | null;
  next_probe_at: string | null;
  waiting: number;
}>;

const columns: readonly Column<Service>[] = [
  textColumn('NAME', ({ name }) => name, 8),
  textColumn('TYPE', ({ type }) => type),
  textColumn('IDEMPOTENT', ({ idempotent }) => (idempotent ? 'yes' : 'no')),
  numberColumn('WAITING', ({ waiting }) => waiting),
  {
    title: 'CIRCUIT',
    text: circuitOf,
    tone: ({ circuit }) => (circuit === 'closed' ? 'good' : 'bad'),
    minWidth: 12,
  },
];

export const services = apiCommand({
  name: 'services',
  description: 'list the services that workflows call, with circuit and waiting sagas',
  route: 'GET /api/v1/services',
  examples: ['redrive saga services'],
  print: rowsAs<Service>('services', columns, 'no services: see services in docs/reference/configuration.md'),
});

function circuitOf({ circuit, since, reason, next_probe_at }: Service): string {
  if (circuit === 'closed') return circuit;
  const probe = next_probe_at === null ? '' : `, next probe ${next_probe_at}`;
  return `${circuit} since ${since ?? '?'}: ${reason ?? 'unknown'}${probe}`;
}
