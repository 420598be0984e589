import { readFileSync } from 'node:fs';

import { isMap as isYamlMap, isScalar, LineCounter, parseDocument, type Document } from 'yaml';

import { codeOf } from '../../kernel/errors.ts';
import { isMap } from '../formats/value.ts';
import type { Layer } from './merge-layers.ts';

const MAX_CHARACTERS = 1024 * 1024;
const MAX_ALIASES = 100;
/** One fault often brings others behind it. */
const MAX_FAULTS = 10;

/** Undefined if there is no such file. */
export function readYamlLayer(file: string): Layer | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT'
      ? undefined
      : broken(file, `the file cannot be read: ${code ?? 'unknown error'}`);
  }
  return yamlLayer(text, file);
}

export function yamlLayer(text: string, file: string): Layer {
  if (text.length > MAX_CHARACTERS)
    return broken(file, `the file is larger than ${MAX_CHARACTERS} characters`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const faults = [...document.errors, ...document.warnings];
  if (faults.some(({ code }) => code === 'RESOURCE_EXHAUSTION'))
    return broken(file, 'the file is nested too deeply');
  if (faults.length > 0) {
    // The parser's own words quote the text around the fault, and that may be a secret: only its code is used.
    return layer({
      problems: faults.slice(0, MAX_FAULTS).map(({ code, pos }) => {
        const { line, col } = lines.linePos(pos[0]);
        const reason = `line ${line}, column ${col}: ${code.toLowerCase().replaceAll('_', ' ')}`;
        return { path: file, reason };
      }),
    });
  }
  const root = toPlain(document);
  if (root === undefined) return broken(file, 'the file uses an alias too often or without its anchor');
  if (root === null) return layer({});
  if (!isMap(root)) return broken(file, 'the file must be a map of keys');
  const source = (keys: readonly string[]): string => `${file}${lineSuffix(document, lines, keys)}`;
  return layer({ entries: [{ keys: [], value: root, source }] });
}

function toPlain(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) ?? null;
  } catch (error) {
    if (error instanceof ReferenceError) return undefined;
    throw error;
  }
}

/** The line of the key, where it can be told: behind an alias it cannot. */
function lineSuffix(document: Document.Parsed, lines: LineCounter, keys: readonly string[]): string {
  const parent: unknown = keys.length === 1 ? document.contents : document.getIn(keys.slice(0, -1), true);
  if (!isYamlMap(parent)) return '';
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === keys.at(-1));
  const offset = isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
  return offset === undefined ? '' : `:${lines.linePos(offset).line}`;
}

const broken = (file: string, reason: string): Layer => layer({ problems: [{ path: file, reason }] });

const layer = (parts: Partial<Layer>): Layer => ({ entries: [], problems: [], warnings: [], ...parts });
