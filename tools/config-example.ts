import { Type, type TSchema } from 'typebox';
import { stringify } from 'yaml';
import type { Node } from '../src/config/reason-against.ts';
import { schema } from '../src/config/schema.ts';

const HEADER = `# yaml-language-server: $schema=./config.schema.json
# Every key with its default: this file changes nothing until you change it. Copy it, keep what you need, and
# name it with --config or CONFIG_PATH; without either, no file is read. An empty file is fine, too.
#
# Later sources override earlier ones:
#   this file < config.<app.environment>.yaml beside it < secret files < environment variables < options
# Maps merge, lists replace, and null goes back to the default.
#
# Every key has an environment variable, named by its path: DATABASE_HOST, DLQ_ARCHIVE_RETENTION_DAYS. A list
# is written a,b,c there, or as JSON; a map of names that you choose, as JSON. An empty variable counts as not set.
# Secrets may come from files: DATABASE_PASSWORD_FILE names one by a variable, secrets.files below by a key.
#
# Durations are whole numbers with units: 250ms, 30s, 5m, 1h30m, 7d.
#
# docs/reference/configuration.md has every key of destinations, queues, schedules, notifiers and services.
`;

const WIDTH = 110;

/** config/config.yaml: every key with its default, and what it means. */
export function exampleFile(): string {
  const sections = Object.entries(schema.properties).map(([key, node]) => linesOf(key, node, ''));
  return `${HEADER}\n${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function linesOf(key: string, node: TSchema & Node, indent: string): readonly string[] {
  const { description, examples = [] } = node as { description?: string; examples?: readonly unknown[] };
  const words = description === undefined ? [] : wrap(plainText(description), WIDTH - indent.length);
  const samples = examples.flatMap((each) => ['For example:', ...sampleLines(key, each)]);
  const comments = [...words, ...samples].map((line) => `${indent}# ${line}`.trimEnd());
  if (!Type.IsObject(node)) return [...comments, `${indent}${key}: ${written(node.default ?? null)}`];
  const inner = Object.entries(node.properties).flatMap(([name, each]) => linesOf(name, each, `${indent}  `));
  return [...comments, `${indent}${key}:`, ...inner];
}

const sampleLines = (key: string, example: unknown): readonly string[] =>
  stringify({ [key]: example }, { lineWidth: WIDTH, singleQuote: true })
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`);

const written = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false, singleQuote: true }).trimEnd();

/** Without the marks of Markdown. */
const plainText = (markdown: string): string =>
  markdown.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('`', '');

function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length + 1 <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
