import { Option, type Command } from 'commander';
import { wholeNumber } from '../whole-number.ts';
import type { ApiAnswer } from './api-client.ts';
import type { ApiSession } from './api-session.ts';

export type PageArgs = Readonly<{
  json?: boolean;
  page?: number;
  pageSize?: number;
  cursor?: string;
  all?: boolean;
  limit: number;
}>;

export type Pagination = Readonly<{
  total_count: number;
  page: number;
  has_next: boolean;
  next_cursor?: string | null;
  total_is_estimate?: true;
}>;

const maxPageSize = 100;
const defaultLimit = 10_000;
const maxLimit = 1_000_000;

/** `whats` are the things in the list. */
export function withPageOptions(command: Command, whats: string): Command {
  return command
    .option('--page <number>', 'which page', wholeNumber(1, 1_000_000))
    .option('--page-size <number>', 'how many on a page (default: 20)', wholeNumber(1, maxPageSize))
    .option('--cursor <cursor>', "go on after a page: its next_cursor, or '' for the first page")
    .addOption(new Option('--all', `all pages, up to --limit ${whats}`).conflicts('page'))
    .option('--limit <number>', 'where --all ends', wholeNumber(1, maxLimit), defaultLimit);
}

export type PagedList<Page, Item> = Readonly<{
  whats: string;
  read: (query: Readonly<Record<string, string | undefined>>) => Promise<ApiAnswer<Page>>;
  itemsOf: (page: Page) => readonly Item[];
  paginationOf: (page: Page) => Pagination;
  /** An item without what a table does not show: a million of them are to fit into memory. */
  lean: (item: Item) => Item;
  show: (items: readonly Item[]) => void;
}>;

export async function showPages<Page, Item>(
  session: ApiSession,
  args: PageArgs,
  list: PagedList<Page, Item>,
): Promise<void> {
  if (args.all === true) return showAll(session, args, list);
  session.show(await list.read(queryOf(args)), (page) => {
    list.show(list.itemsOf(page));
    sayWhatFollows(session, list, page);
  });
}

function queryOf({ page, pageSize, cursor }: PageArgs): Readonly<Record<string, string | undefined>> {
  return { page: page?.toString(), page_size: pageSize?.toString(), cursor };
}

/** As JSON a line per page, each written as it comes; as a table the rows of all pages together. */
async function showAll<Page, Item>(
  session: ApiSession,
  args: PageArgs,
  list: PagedList<Page, Item>,
): Promise<void> {
  const shown: Item[] = [];
  let count = 0;
  let cursor: string | null = args.cursor ?? '';
  while (cursor !== null && count < args.limit) {
    const pageSize = Math.min(args.pageSize ?? maxPageSize, args.limit - count);
    const { text, value } = await list.read(queryOf({ ...args, cursor, pageSize }));
    const items = list.itemsOf(value);
    if (args.json === true) session.print.json(text);
    else shown.push(...items.map(list.lean));
    count += items.length;
    cursor = list.paginationOf(value).next_cursor ?? null;
  }
  if (args.json !== true) list.show(shown);
  if (cursor !== null) session.print.note(`ended at --limit ${args.limit}; go on with --cursor ${cursor}`);
}

function sayWhatFollows<Page, Item>({ print }: ApiSession, list: PagedList<Page, Item>, page: Page): void {
  const count = list.itemsOf(page).length;
  if (count === 0) return;
  const { total_count, page: number, has_next, next_cursor, total_is_estimate } = list.paginationOf(page);
  const total = `${total_is_estimate === true ? 'about ' : ''}${total_count}`;
  const next = next_cursor === undefined ? `--page ${number + 1}` : `--cursor ${next_cursor}`;
  print.note(`${count} of ${total} ${list.whats}${has_next ? `; next: ${next}` : ''}`);
}
