import assert from 'node:assert/strict';
import { Type, type TSchema } from 'typebox';
import { childNode } from '../src/config/schema-keys.ts';
import { schema } from '../src/config/schema.ts';

type Described = TSchema &
  Readonly<{
    what?: string;
    description?: string;
    default?: unknown;
    otherwise?: string;
    variable?: string;
    secretFile?: string;
  }>;

const TABLE = /(<!-- keys: (\S+(?: \S+)*) -->\n)[\s\S]*?(<!-- end -->)/g;

/**
 * The reference with its tables written anew. `<!-- keys: database roles -->` begins the table of these keys; with
 * `jobs.queues.*` it is that of a map of names, without the path.
 */
export const withTables = (page: string): string =>
  page.replaceAll(
    TABLE,
    (_, begin: string, paths: string, end: string) => `${begin}\n${tableOf(paths.split(' '))}\n${end}`,
  );

/** The keys that the tables of a page are about, to find those that have none. */
export const tablesIn = (page: string): readonly string[] =>
  [...page.matchAll(TABLE)].flatMap(([, , paths = '']) => paths.split(' '));

function tableOf(paths: readonly string[]): string {
  const rows = paths.flatMap((path) => {
    const keys = path.split('.');
    const isNamed = keys.at(-1) === '*' || keys.at(-1) === '[]';
    const node = (isNamed ? keys.slice(0, -1) : keys).reduce<TSchema | undefined>(childNode, schema);
    assert.ok(node, `there is no key ${path}`);
    return isNamed ? rowsOfEntry(entryOf(node)) : rowsIn(path, node);
  });
  return `| key | value | default | meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
}

function entryOf(node: TSchema): TSchema {
  const entry = Type.IsArray(node) ? node.items : childNode(node, '*');
  assert.ok(entry);
  return entry;
}

/** First what all variants have, then each with its own keys. */
function rowsOfEntry(entry: TSchema): readonly string[] {
  const variants = Type.IsUnion(entry) ? entry.anyOf.filter((each) => Type.IsObject(each)) : [];
  const [first, ...others] = variants;
  if (!first) return Type.IsObject(entry) ? rowsOf('', entry.properties) : [];
  const words = variants.map(
    ({ properties }) => `\`${String((properties['type'] as { const?: string }).const)}\``,
  );
  const isCommon = (key: string): boolean =>
    others.every(
      ({ properties }) => properties[key] !== undefined && properties[key] === first.properties[key],
    );
  const common = Object.entries(first.properties).filter(([key]) => isCommon(key));
  return [
    row('type', ['', 'required', words.join(', ')]),
    ...rowsOf('', Object.fromEntries(common)),
    ...variants.flatMap(({ properties: { type, ...own } }, index) => [
      `| **${(words[index] ?? '').replaceAll('`', '')}** | | | ${describedIn(type)} |`,
      ...rowsOf('', Object.fromEntries(Object.entries(own).filter(([key]) => !isCommon(key)))),
    ]),
  ];
}

const describedIn = (node: Described | undefined): string => node?.description ?? '';

const rowsOf = (parent: string, properties: Readonly<Record<string, TSchema>>): readonly string[] =>
  Object.entries(properties).flatMap(([key, node]) => rowsIn(`${parent}${key}`, node));

function rowsIn(path: string, given: TSchema): readonly string[] {
  const node: Described = given;
  const isSection = node.description === undefined || path in schema.properties;
  if (Type.IsObject(given) && isSection) return rowsOf(`${path}.`, given.properties);
  const also = [
    node.variable === undefined ? '' : ` Also \`${node.variable}\``,
    node.secretFile === undefined ? '' : ` Also read from \`/vault/secrets/${node.secretFile}\``,
  ];
  const meaning = [node.description ?? '', ...also].filter((each) => each !== '').join('.');
  return [row(path, [valueOf(node), defaultOf(node), meaning])];
}

function valueOf(node: Described): string {
  if (Type.IsUnknown(node)) return 'any value of JSON';
  if (Type.IsRecord(node) || Type.IsObject(node)) return 'a map';
  if (Type.IsArray(node)) return `a list of: ${valueOf(node.items)}`;
  if (!Type.IsUnion(node)) return node.what ?? '';
  const parts = node.anyOf.map((each) => (Type.IsArray(each) ? 'a list of them' : valueOf(each)));
  return [...new Set(parts)].join(', or ');
}

const row = (path: string, cells: readonly string[]): string =>
  `| \`${path}\` | ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;

function defaultOf(node: Described): string {
  if (node.otherwise !== undefined) return node.otherwise;
  const value = node.default;
  if (value === undefined) return Type.IsOptional(node) ? '' : 'required';
  if (value === '') return 'empty';
  if (Array.isArray(value))
    return value.length === 0 ? 'none' : value.map((each) => `\`${String(each)}\``).join(', ');
  return typeof value === 'object' ? 'none' : `\`${JSON.stringify(value).replaceAll('"', '')}\``;
}
