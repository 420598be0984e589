import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';

import { kindOf, MAX_TEXT, type Flaw } from './formats/value.ts';

/** What a schema's node may say besides JSON Schema: see formats/value.ts. */
export type Node = TSchema &
  Readonly<{
    what?: string;
    hasLines?: boolean;
    unit?: string;
    names?: Node;
    isValid?: (value: string) => boolean;
    reason?: (value: unknown) => string;
    // `never`, because a node knows what it is given.
    rule?: (value: never, path: string) => Flaw | undefined;
    default?: unknown;
    // Of JSON Schema.
    type?: string;
    const?: string;
    minItems?: number;
    maxItems?: number;
  }>;

/** What is wrong with a single value by itself; never repeats it. */
export function reasonAgainst(node: Node, value: unknown): string | undefined {
  if (isRight(node, value)) return undefined;
  if (node.reason) return node.reason(value);
  const must = `must be ${node.what}`;
  if (typeof value !== (node.type === 'integer' ? 'number' : (node.type ?? 'string'))) {
    const isQuoted = (typeof value === 'number' || typeof value === 'boolean') && isRight(node, `${value}`);
    return `${must}, not ${kindOf(value)}${isQuoted ? ': put it in quotes' : ''}`;
  }
  if (typeof value !== 'string') return must;
  if (value.length > MAX_TEXT) return `${must} of at most ${MAX_TEXT} characters`;
  return hasControls(value) ? `${must} without control characters` : must;
}

/** Control characters break log lines, file names and connection strings alike. */
const hasControls = (value: string): boolean => /\p{Cc}/u.test(value);

const isRight = (node: Node, value: unknown): boolean =>
  Value.Check(node, value) &&
  (typeof value !== 'string' || (!hasControls(oneLine(node, value)) && (node.isValid?.(value) ?? true)));

const oneLine = (node: Node, value: string): string =>
  node.hasLines === true ? value.replaceAll(/\r?\n/g, ' ') : value;
