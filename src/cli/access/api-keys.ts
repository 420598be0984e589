import type { ApiSession } from '../api/api-session.ts';
import { UsageError } from '../exit-code.ts';
import { lastColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact } from '../output/facts.ts';
import type { Column, Tone } from '../output/render-table.ts';
import { apiCommand, rowsAs, sliceCommand } from '../slice/api-command.ts';
import type { Input, Value } from '../slice/define-command.ts';
import type { SliceCommands } from '../slice/add-slice.ts';
import { requestOf } from '../slice/request-of.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import { wholeNumber } from '../whole-number.ts';

const dimensions = ['topics', 'queues', 'destinations', 'workflows'] as const;
type Scopes = Readonly<Partial<Record<(typeof dimensions)[number], readonly string[]>>>;

type ApiKey = Readonly<{
  id: string;
  name: string;
  role: string;
  scopes: Scopes | null;
  maker_name: string;
  created_at: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
}>;
type MadeKey = ApiKey & Readonly<{ key: string }>;

const columns: readonly Column<ApiKey>[] = [
  textColumn('ID', ({ id }) => id),
  textColumn('NAME', ({ name }) => name, 12),
  textColumn('ROLE', ({ role }) => role),
  { title: 'STATE', text: (key) => stateOf(key), tone: (key) => toneOf(key) },
  textColumn('EXPIRES', ({ expires_at }) => expires_at),
  textColumn('LAST USED', ({ last_used_at }) => last_used_at ?? 'never'),
  textColumn('MADE BY', ({ maker_name }) => maker_name, 10),
  optional(lastColumn('ONLY', ({ scopes }) => scopeText(scopes))),
];

const list = apiCommand({
  name: 'list',
  description: 'list API keys, newest first, also expired and revoked ones',
  route: 'GET /api/v1/keys',
  examples: ['redrive api-keys list'],
  print: rowsAs<ApiKey>('keys', columns, 'no API keys'),
});

const route = 'POST /api/v1/keys';
const sent: readonly Input[] = [
  { flags: '<name>', text: 'what the key is for' },
  { flags: '--role <role>', text: 'role of the key; at most what you may do yourself', isRequired: true },
  {
    flags: '--expires-in-days <days>',
    text: 'days until it expires (default: 90)',
    parse: wholeNumber(1, 365),
  },
];
const narrowing: readonly Input[] = dimensions.map((dimension) => ({
  flags: `--${dimension} <patterns>`,
  text: `only these ${dimension}: patterns, separated by commas`,
}));

/** Only the key itself goes to standard output, so that it can be piped into a secret store. */
const create = sliceCommand(
  {
    name: 'create',
    description: 'make an API key; the key is printed once, alone on standard output',
    route,
    inputs: [...sent, ...narrowing],
    examples: [
      "redrive api-keys create 'mail worker' --role worker --queues mail",
      "redrive api-keys create 'nightly retry' --role sys_operator --expires-in-days 30 > key.txt",
    ],
  },
  async (session, values) => {
    const { id, input } = requestOf(route, sent, values);
    const scopes = Object.fromEntries(
      dimensions.flatMap((dimension) => {
        const patterns = values[dimension];
        return patterns === undefined ? [] : [[dimension, patternsOf(dimension, patterns)]];
      }),
    );
    const narrowed = Object.keys(scopes).length === 0 ? input : { ...input, scopes };
    session.show(await session.call<MadeKey>({ id, input: narrowed }), (made) => printMade(made, session));
  },
);

function patternsOf(dimension: string, patterns: Value): readonly string[] {
  const names = String(patterns)
    .split(',')
    .map((name) => name.trim());
  if (names.includes('')) throw new UsageError(`--${dimension} has an empty pattern`);
  return names;
}

function printMade(made: MadeKey, { print, now }: ApiSession): void {
  print.line(escapeText(made.key));
  print.note(`API key ${escapeText(made.id)}, role ${escapeText(made.role)}${describeScope(made)}`);
  print.note(`expires ${escapeText(instantFact(made.expires_at, now) ?? '')}`);
  print.note('it is not shown again; commands read it from REDRIVE_API_KEY');
}

function describeScope({ scopes }: ApiKey): string {
  const text = scopeText(scopes);
  return text === null ? '' : `, only ${escapeText(text)}`;
}

const revoke = apiCommand<Readonly<{ message: string }>>({
  name: 'revoke',
  description: 'revoke an API key; takes effect at once',
  route: 'DELETE /api/v1/keys/{id}',
  inputs: [{ flags: '<id>', text: 'id of the key: the part between rdk_ and the next _' }],
  examples: ['redrive api-keys revoke k3x9m2pq'],
  print: ({ message }, { print }) => print.line(escapeText(message)),
});

function stateOf({ revoked_at: revoked, expires_at: expires }: ApiKey): string {
  if (revoked !== null) return 'revoked';
  return Date.parse(expires) <= Date.now() ? 'expired' : 'active';
}

function toneOf(key: ApiKey): Tone {
  return stateOf(key) === 'active' ? 'good' : 'faint';
}

function scopeText(scopes: Scopes | null): string | null {
  if (scopes === null) return null;
  return dimensions
    .flatMap((dimension) =>
      scopes[dimension] === undefined ? [] : [`${dimension} ${scopes[dimension].join(',')}`],
    )
    .join('; ');
}

export const apiKeyCommands: SliceCommands = {
  name: 'api-keys',
  description: 'API keys of programs: list, create, revoke',
  examples: ['redrive api-keys list', "redrive api-keys create 'mail worker' --role worker --queues mail"],
  groups: { Read: [list], Change: [create, revoke] },
};
