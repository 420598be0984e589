import type { Answer } from '../../client-http/index.ts';
import type { ApiSession } from '../api/api-session.ts';
import { withProgress } from '../output/progress.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { sliceCommand, type AddCommand } from './api-command.ts';
import type { CommandDefinition, Input, Values } from './define-command.ts';
import { requestOf, type Route } from './request-of.ts';

/** A command that lists the items of a slice page by page. */
export type ListCommand<Item, Page> = CommandDefinition &
  Readonly<{
    route: Route;
    /** The answer's field with the items; also what they are called in messages. */
    items: string;
    columns: readonly Column<Item>[];
    /** Fields that no column shows. They are dropped, so that a million items fit into memory. */
    unused: readonly (keyof Item)[];
    /** Printed above the items. */
    printAbove?: (page: Page, session: ApiSession) => void;
  }>;

type Pagination = Readonly<{
  total_count: number;
  page: number;
  has_next: boolean;
  next_cursor?: string | null;
  total_is_estimate?: true;
}>;

type Query = Readonly<{ page?: number; pageSize?: number; cursor?: string }>;
type PageValues = Query & Readonly<{ json?: boolean; all?: boolean; limit?: number }>;

const maxPageSize = 100;
const defaultLimit = 10_000;

export function listCommand<Item, Page = unknown>(list: ListCommand<Item, Page>): AddCommand {
  const inputs = [...(list.inputs ?? []), ...pageInputs(list.items)];
  const command = { ...list, inputs, isWatchable: true, hasOwnProgress: true } as const;
  return sliceCommand(command, async (session, values, terminal) => {
    const read = (query: Query) => session.call<Page>(requestOf(list.route, inputs, { ...values, ...query }));
    if (values['all'] === true)
      return withPages(terminal, list, values, (onPage) => showAll(session, list, { values, read, onPage }));
    const answer = await read({});
    session.show(answer, (page) => {
      const items = itemsOf(list, page);
      showItems(session, list, page, items);
      if (items.length > 0) session.print.note(positionOf(list, page));
    });
  });
}

function pageInputs(items: string): readonly Input[] {
  return [
    { flags: '--page <number>', text: 'page number', parse: wholeNumber(1, 1_000_000) },
    {
      flags: '--page-size <number>',
      text: `${items} per page (default: 20)`,
      parse: wholeNumber(1, maxPageSize),
    },
    { flags: '--cursor <cursor>', text: "next_cursor of the previous page; '' for the first page" },
    { flags: '--all', text: `all pages, up to --limit ${items}`, field: null, conflicts: ['page', 'watch'] },
    {
      flags: '--limit <number>',
      text: `maximum of --all (default: ${defaultLimit})`,
      field: null,
      parse: wholeNumber(1, 1_000_000),
    },
  ];
}

function itemsOf<Item, Page>({ items }: ListCommand<Item, Page>, page: Page): readonly Item[] {
  return (page as Readonly<Record<string, readonly Item[]>>)[items] ?? [];
}

function paginationOf(page: unknown): Pagination {
  return (page as Readonly<{ pagination: Pagination }>).pagination;
}

/** Shows how many items have been read, and of how many. */
function withPages<Item, Page>(
  terminal: Terminal,
  { items: unit }: ListCommand<Item, Page>,
  { json }: PageValues,
  work: (onPage: (done: number, total: number) => void) => Promise<void>,
): Promise<void> {
  let read = 0;
  let total: number | undefined;
  const options = {
    label: 'reading',
    unit,
    isQuiet: json === true,
    countDone: () => read,
    get total() {
      return total;
    },
  };
  return withProgress(terminal, options, () =>
    work((done, all) => {
      read = done;
      total = all;
    }),
  );
}

/** As JSON one line per page, printed as it arrives; as a table all pages together. */
async function showAll<Item, Page>(
  session: ApiSession,
  list: ListCommand<Item, Page>,
  {
    values,
    read,
    onPage,
  }: Readonly<{
    values: Values;
    read: (query: Query) => Promise<Answer<Page>>;
    onPage: (done: number, total: number) => void;
  }>,
): Promise<void> {
  const { json, limit = defaultLimit, pageSize = maxPageSize, cursor: first = '' } = values as PageValues;
  const shown: Item[] = [];
  let count = 0;
  let cursor: string | null = first;
  let last: Page | undefined;
  while (cursor !== null && count < limit) {
    const { text, value } = await read({ cursor, pageSize: Math.min(pageSize, limit - count) });
    const items = itemsOf(list, value);
    if (json === true) session.print.json(text);
    else shown.push(...items.map((item) => withoutFields(item, list.unused)));
    count += items.length;
    onPage(count, Math.min(limit, paginationOf(value).total_count));
    cursor = paginationOf(value).next_cursor ?? null;
    last = value;
  }
  if (json !== true && last !== undefined) showItems(session, list, last, shown);
  // As JSON, the last page has the cursor.
  if (cursor !== null && json !== true)
    session.print.note(`stopped at --limit ${limit}; continue with --cursor ${cursor}`);
}

function withoutFields<Item>(item: Item, names: readonly (keyof Item)[]): Item {
  const lean = { ...item };
  for (const name of names) delete lean[name];
  return lean;
}

function showItems<Item, Page>(
  session: ApiSession,
  list: ListCommand<Item, Page>,
  page: Page,
  items: readonly Item[],
): void {
  list.printAbove?.(page, session);
  if (items.length === 0) session.print.note(`no ${list.items}`);
  else session.print.table(list.columns, items);
}

/** `20 of 117 orders; next: --page 2` */
function positionOf<Item, Page>(list: ListCommand<Item, Page>, page: Page): string {
  const { total_count, page: number, has_next, next_cursor, total_is_estimate } = paginationOf(page);
  const total = `${total_is_estimate === true ? 'about ' : ''}${total_count}`;
  const next = next_cursor === undefined ? `--page ${number + 1}` : `--cursor ${next_cursor}`;
  return `${itemsOf(list, page).length} of ${total} ${list.items}${has_next ? `; next: ${next}` : ''}`;
}
