import { ageColumn, lastColumn, textColumn } from './output/columns.ts';
import type { Column } from './output/render-table.ts';
import { apiCommand, rowsAs } from './slice/api-command.ts';

type FoundItem = Readonly<{
  kind: string;
  id: string;
  status: string;
  title: string;
  by: string;
  at: string;
  archived: boolean;
}>;

type Found = Readonly<{ items: readonly FoundItem[]; unavailable: readonly string[] }>;

const columns: readonly Column<FoundItem>[] = [
  textColumn('KIND', ({ kind }) => kind),
  textColumn('ID', ({ id }) => id),
  textColumn('STATUS', ({ status, archived }) => (archived ? `${status}, archived` : status)),
  textColumn('BY', ({ by }) => by),
  ageColumn('AGE', ({ at }) => at),
  lastColumn('WHERE', ({ title }) => title),
];

/** Fails where a module could not be searched: nothing that is missing there was proven to be missing. */
export const find = apiCommand<Found>({
  name: 'find',
  description: 'find messages, redrives, orders, jobs and sagas by id, key or trace',
  route: 'GET /api/v1/find',
  inputs: [{ flags: '<text>', text: 'an id or its beginning, a whole key, a trace id', field: 'q' }],
  examples: ['redrive find order-17', 'redrive find 4bf92f3577b34da6a3ce929d0e0e4736'],
  print(answer, about) {
    rowsAs<FoundItem>(
      'items',
      columns,
      'nothing was found; keys and trace ids have to be complete',
    )(answer, about);
    if (answer.unavailable.length > 0)
      about.print.note(`these could not be searched: ${answer.unavailable.join(', ')}`);
  },
  isFailure: ({ unavailable }) => unavailable.length > 0,
});
