import { Type, type TArray, type TObject, type TRecord, type TUnion } from 'typebox';

import { nearest } from '../kernel/nearest.ts';
import type { Problem } from './config-error.ts';
import { anyOf, isMap, kindOf, MAX_ITEMS, oneOf, printable } from './formats/value.ts';
import { MAX_ENTRIES } from './formats/named-map.ts';
import { camel } from './in-code.ts';
import { childPath } from './key-path.ts';
import { reasonAgainst, type Node } from './reason-against.ts';
import { suggestPath } from './schema-keys.ts';

/** Whatever is wrong with a value is reported, with the path; the values that are right are given nevertheless. */
type Reader = Readonly<{
  root: Node;
  report(problem: Omit<Problem, 'source'>): void;
  countProblems(): number;
}>;

const BROKEN = Symbol('broken');

/** The value under the keys of the code, with the defaults for what is missing or wrong. */
export function readValue(root: Node, value: unknown, sourceOf: (path: string) => string | undefined) {
  const problems: Problem[] = [];
  const reader: Reader = {
    root,
    report: (problem) => void problems.push({ ...problem, source: sourceOf(problem.path) }),
    countProblems: () => problems.length,
  };
  return { value: read(reader, root, value, ''), problems };
}

function read(reader: Reader, node: Node, value: unknown, path: string): unknown {
  const before = reader.countProblems();
  const found = readParts(reader, node, value, path);
  if (found === BROKEN) return BROKEN;
  if (reader.countProblems() === before) {
    const flaw = node.rule?.(found as never, path);
    if (flaw !== undefined) {
      const { at, reason } = typeof flaw === 'string' ? { at: '', reason: flaw } : flaw;
      reader.report({ path: `${path}${at}`, reason });
      return BROKEN;
    }
  }
  return Type.IsCodec(node) ? node['~codec'].decode(found) : found;
}

function readParts(reader: Reader, node: Node, value: unknown, path: string): unknown {
  if (Type.IsUnion(node)) return readUnion(reader, node, value, path);
  if (Type.IsObject(node)) return readObject(reader, node, value, path);
  if (Type.IsRecord(node)) return readRecord(reader, node, value, path);
  if (Type.IsArray(node)) return readList(reader, node, value, path);
  return readLeaf(reader, node, value, path);
}

/** A map whose keys are all known. */
function readObject(reader: Reader, node: TObject, value: unknown, path: string): unknown {
  const word = wordOf(node);
  const reason = word === undefined ? 'unknown key' : `unknown key for type ${word}`;
  if (!isMap(value)) {
    reader.report({ path, reason: `must be a map of keys, not ${kindOf(value)}` });
    return BROKEN;
  }
  for (const key of Object.keys(value))
    if (!Object.hasOwn(node.properties, key))
      reader.report({
        path: childPath(path, printable(key)),
        reason,
        // Inside of named things the key alone says enough.
        suggestion: suggestPath(reader.root, path, key) ?? anyOf(nearest(key, Object.keys(node.properties))),
      });
  const fields = Object.entries(node.properties).map(([key, child]) => {
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    const found = readField(reader, child, given, childPath(path, key));
    return [`${camel(key)}${(child as Node).unit ?? ''}`, found] as const;
  });
  return fields.some(([, found]) => found === BROKEN) ? BROKEN : Object.fromEntries(fields);
}

/** A field that is null counts as missing. One that is missing or wrong has its default, if there is one. */
function readField(reader: Reader, node: Node, value: unknown, path: string): unknown {
  const isGiven = value !== undefined && value !== null;
  const found = isGiven ? read(reader, node, value, path) : BROKEN;
  if (found !== BROKEN) return found;
  if (node.default !== undefined) return read(reader, node, node.default, path);
  if (Type.IsOptional(node)) return undefined;
  if (!isGiven) reader.report({ path, reason: 'is missing' });
  return BROKEN;
}

/** A map whose keys the user chooses. An entry that is wrong does not hide what rules have to say of the others. */
function readRecord(reader: Reader, node: TRecord & Node, value: unknown, path: string): unknown {
  if (!isMap(value)) {
    reader.report({ path, reason: `must be a map of names, not ${kindOf(value)}` });
    return BROKEN;
  }
  const given = Object.entries(value).filter(([, each]) => each !== null);
  if (given.length > MAX_ENTRIES) {
    reader.report({ path, reason: `must be a map of at most ${MAX_ENTRIES} names` });
    return BROKEN;
  }
  const names = node.names ?? {};
  const [entry = {}] = Object.values(node.patternProperties);
  return Object.fromEntries(
    given.flatMap(([key, each]) => {
      const at = childPath(path, printable(key));
      const reason = reasonAgainstName(names, key);
      if (reason !== undefined) {
        const small = key.toLowerCase();
        const suggestion = reasonAgainstName(names, small) === undefined ? small : undefined;
        reader.report({ path: at, reason, suggestion });
        return [];
      }
      const found = read(reader, entry, each, at);
      return found === BROKEN ? [] : [[key, found] as const];
    }),
  );
}

function reasonAgainstName(names: Node, name: string): string | undefined {
  const flaw = reasonAgainst(names, name) ?? names.rule?.(name as never, '');
  return typeof flaw === 'object' ? flaw.reason : flaw;
}

function readList(reader: Reader, node: TArray & Node, value: unknown, path: string): unknown {
  const { minItems = 0, maxItems = MAX_ITEMS } = node;
  if (!Array.isArray(value)) reader.report({ path, reason: `must be a list, not ${kindOf(value)}` });
  else if (value.length > maxItems && minItems === 0)
    reader.report({ path, reason: `must be a list of at most ${maxItems} items` });
  else if (value.length < minItems || value.length > maxItems)
    reader.report({ path, reason: `must be a list of ${minItems} to ${maxItems} items` });
  else {
    const items = value.map((each, index) => read(reader, node.items, each, `${path}[${index}]`));
    return items.includes(BROKEN) ? BROKEN : items;
  }
  return BROKEN;
}

/** Which of its schemas is meant is told by the kind of the value. */
function readUnion(reader: Reader, { anyOf: nodes }: TUnion, value: unknown, path: string): unknown {
  const maps = nodes.filter((each) => Type.IsObject(each));
  if (isMap(value) && maps.length > 0) return readVariant(reader, maps, value, path);
  const list = nodes.find((each) => Type.IsArray(each));
  if (list && Array.isArray(value)) return read(reader, list, value, path);
  const leaf = nodes.find((each) => !Type.IsObject(each) && !Type.IsArray(each));
  return read(reader, leaf ?? maps[0] ?? {}, value, path);
}

/** Among maps it is told by the word at `type`. */
function readVariant(
  reader: Reader,
  maps: readonly TObject[],
  value: Readonly<Record<string, unknown>>,
  path: string,
): unknown {
  const [first] = maps;
  const words = maps.flatMap((map) => wordOf(map) ?? []);
  if (words.length === 0) return read(reader, first ?? {}, value, path);
  const type = Object.hasOwn(value, 'type') ? (value['type'] ?? undefined) : undefined;
  if (type === undefined) reader.report({ path: childPath(path, 'type'), reason: 'is missing' });
  const word = type === undefined ? BROKEN : readLeaf(reader, oneOf(words), type, childPath(path, 'type'));
  const meant = maps.find((map) => wordOf(map) === word);
  return meant === undefined ? BROKEN : read(reader, meant, value, path);
}

/** What stands at `type` in a variant. */
function wordOf({ properties }: TObject): string | undefined {
  const type: Node | undefined = properties['type'];
  return type?.const;
}

function readLeaf(reader: Reader, node: Node, value: unknown, path: string): unknown {
  const words = wordsOf(node);
  const found = words?.find(
    (word) => typeof value === 'string' && word.toLowerCase() === value.toLowerCase(),
  );
  if (found !== undefined) return found;
  const reason = reasonAgainst(node, value);
  if (reason === undefined) return value;
  const suggestion = typeof value === 'string' && words ? anyOf(nearest(value, words)) : undefined;
  reader.report({ path, reason, suggestion });
  return BROKEN;
}

const wordsOf = (node: Node): readonly string[] | undefined =>
  Type.IsEnum(node) ? (node.enum as string[]) : Type.IsLiteral(node) ? [node.const] : undefined;
