import { isUuid } from '../../kernel/uuid.ts';
import { minPrefixDigits, uuidsWithPrefix } from '../../kernel/uuid-prefix.ts';
import { AppError } from '../../kernel/errors.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { UsageError } from '../exit-code.ts';
import { formatAge } from '../output/format-age.ts';
import { renderTable, type Column } from '../output/render-table.ts';
import { nameOf, type Input, type Values } from './define-command.ts';
import { requestOf, type Route } from './request-of.ts';

/** Where the server completes the ids of a kind of item. */
export type ItemIds = Readonly<{ what: string; route: Route }>;

type Candidate = Readonly<{ id: string; status: string; created_at: string | null; archived: boolean }>;
type Candidates = Readonly<{ ids: readonly Candidate[]; has_more: boolean }>;

/** The argument `<id>`: an id, or a prefix of it that no other item has. */
export function idInput(ids: ItemIds): Input {
  const text = `${ids.what} id, or at least its first ${minPrefixDigits} characters if no other id has them`;
  return { flags: '<id>', text, ids };
}

/** The values with every shortened id completed. Whole ids are not looked up. */
export async function withWholeIds(
  session: ApiSession,
  inputs: readonly Input[],
  values: Values,
): Promise<Values> {
  const whole: Record<string, Values[string]> = { ...values };
  for (const input of inputs) {
    const { ids } = input;
    const given = values[nameOf(input)];
    if (ids === undefined || given === undefined) continue;
    const found: string[] = [];
    for (const id of [given].flat()) found.push(await wholeId(session, ids, String(id)));
    whole[nameOf(input)] = Array.isArray(given) ? found : found[0];
  }
  return whole;
}

async function wholeId(session: ApiSession, { what, route }: ItemIds, text: string): Promise<string> {
  if (isUuid(text)) return text;
  if (uuidsWithPrefix(text) === null)
    throw new UsageError(
      `${escapeText(text)} is not a ${what} id: give a UUID, or at least its first ${minPrefixDigits} characters`,
    );
  const { value } = await session.call<Candidates>({
    ...requestOf(route, [], {}),
    input: { prefix: text },
  });
  const [first, ...others] = value.ids;
  if (first === undefined)
    throw new AppError('SYS_CLI_NOT_FOUND', 'not_found', `no ${what} has an id that begins with ${text}`);
  if (others.length > 0) throw ambiguous(what, text, value);
  return first.id;
}

const columns: readonly Column<Candidate>[] = [
  { title: 'ID', text: ({ id }) => id },
  { title: 'STATUS', text: ({ status, archived }) => `${status}${archived ? ' (archived)' : ''}` },
  { title: 'AGE', text: ({ created_at }, now) => formatAge(created_at, now) },
];

function ambiguous(what: string, text: string, { ids, has_more }: Candidates): UsageError {
  const count = has_more ? `more than ${ids.length}` : ids.length;
  return new UsageError(`${count} ${what}s have an id that begins with ${text}`, {
    hints: renderTable(columns, ids).map((line) => `  ${line}`),
    details: ids.map(({ id }) => ({ field: 'id', reason: 'ambiguous', message: id })),
  });
}
