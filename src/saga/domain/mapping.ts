import assert from 'node:assert/strict';
import {
  parseTemplate,
  pathText,
  printTemplate,
  type ParsedTemplate,
  type Reference,
  type Template,
} from './template.ts';
import type { Mapping } from './workflow.ts';

/** What references look into. */
export type Sources = Readonly<{
  /** The saga's payload. */
  input: unknown;
  /** The answers of the steps that are done, by name. */
  outputs: Readonly<Record<string, unknown>>;
  /** The answer of the step that is being undone; undefined where there is none, as in doubt, and in an action. */
  own?: unknown;
}>;

/** In an action a reference that leads nowhere is a contract defect, and nothing is sent: `defect` says which. */
export type Mapped<T = unknown> = Readonly<{ ok: true; value: T }> | Readonly<{ ok: false; defect: string }>;

/** As much as a participant is ever sent; a short mapping could repeat a large payload without end. */
const MAX_MAPPED_CHARACTERS = 1024 * 1024;

/** What an action sends; without a mapping it is the saga's payload. */
export function mapInput(mapping: Mapping | null, sources: Sources): Mapped {
  return fill(mapping, sources, 'action');
}

/**
 * What an undo sends. It must be sent whatever is known, so what leads nowhere is left out: a key of an object goes,
 * an element of a list and the whole message become null, so that the others keep their places.
 */
export function mapUndoInput(mapping: Mapping | null, sources: Sources): Mapped {
  return fill(mapping, sources, 'undo');
}

/**
 * The path of an HTTP method with its references filled in, each as one URL-encoded value. There is no key that could
 * be left out, so a reference that leads nowhere is a defect in an undo too. So is one that would make another
 * path: an empty value, or `..`.
 */
export function mapPath(path: string, sources: Sources): Mapped<string> {
  let text = '';
  for (const part of templateOf(path)) {
    if (typeof part === 'string') {
      text += part;
      continue;
    }
    const found = lookUp(part, sources);
    const value = found === undefined ? undefined : textOf(found.value);
    if (value === undefined || value === '')
      return { ok: false, defect: `${pathText(part)} gives the path no value` };
    text += encodeURIComponent(value.toWellFormed());
    if (text.length > MAX_PATH_CHARACTERS) return { ok: false, defect: 'the path is too long' };
  }
  return hasDotSegment(text)
    ? { ok: false, defect: 'the path would lead somewhere else: it has . or .. between slashes' }
    : { ok: true, value: text };
}

const MAX_PATH_CHARACTERS = 8192;

/** URL parsers resolve these, encoded or not. */
export function hasDotSegment(path: string): boolean {
  const [plain = ''] = path.split(/[?#]/, 1);
  return plain.split(/[/\\]/).some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
}

/** Whether it is one reference as a whole, which keeps its JSON type. */
export function isReference(mapping: Mapping): boolean {
  if (typeof mapping !== 'string') return false;
  const [first, second] = templateOf(mapping);
  return typeof first === 'object' && second === undefined;
}

/** Every reference in it, with the way to it: `lines.0.sku`. */
export function referencesIn(mapping: Mapping): readonly Readonly<{ at: string; reference: Reference }>[] {
  return stringsIn(mapping, '').flatMap(({ at, text }) =>
    templateOf(text)
      .filter((part) => typeof part !== 'string')
      .map((reference) => ({ at, reference })),
  );
}

/** The same mapping in its one spelling, and what is wrong with its references. */
export function normalizeMapping(mapping: Mapping): Readonly<{
  mapping: Mapping;
  flaws: readonly Readonly<{ at: string; message: string }>[];
}> {
  const flaws = stringsIn(mapping, '').flatMap(({ at, text }) => {
    const parsed = parseTemplate(text);
    return parsed.ok ? [] : [{ at, message: parsed.message }];
  });
  return { mapping: flaws.length > 0 ? mapping : respell(mapping), flaws };
}

function respell(mapping: Mapping): Mapping {
  if (typeof mapping === 'string') return printTemplate(templateOf(mapping));
  return isScalar(mapping) ? mapping : mapChildren(mapping, respell);
}

function stringsIn(mapping: Mapping, at: string): readonly Readonly<{ at: string; text: string }>[] {
  if (typeof mapping === 'string') return mapping.includes('${') ? [{ at, text: mapping }] : [];
  if (isScalar(mapping)) return [];
  return Object.entries(mapping).flatMap(([key, child]) =>
    stringsIn(child, at === '' ? key : `${at}.${key}`),
  );
}

type Way = Readonly<{ sources: Sources; place: 'action' | 'undo'; spend(value: unknown): void }>;

/** Thrown through the recursion of this file only, and a value outside of it. */
class Defect extends Error {}

function fill(mapping: Mapping | null, sources: Sources, place: Way['place']): Mapped {
  if (mapping === null) return { ok: true, value: sources.input };
  let left = MAX_MAPPED_CHARACTERS;
  const spend = (value: unknown): void => {
    left -= sizeOf(value, left);
    if (left < 0) throw new Defect(`it would be larger than ${MAX_MAPPED_CHARACTERS} characters`);
  };
  try {
    return { ok: true, value: fillIn(mapping, { sources, place, spend }) ?? null };
  } catch (error) {
    if (error instanceof Defect) return { ok: false, defect: error.message };
    throw error;
  }
}

/** Undefined for what an undo leaves out. */
function fillIn(mapping: Mapping, way: Way): unknown {
  if (typeof mapping === 'string')
    return mapping.includes('${') ? fillText(templateOf(mapping), way) : mapping;
  if (isScalar(mapping)) return mapping;
  if (isList(mapping)) return mapping.map((child) => fillIn(child, way) ?? null);
  return Object.fromEntries(
    Object.entries(mapping)
      .map(([key, child]) => [key, fillIn(child, way)] as const)
      .filter(([, value]) => value !== undefined),
  );
}

function fillText(template: Template, way: Way): unknown {
  const [first, second] = template;
  if (typeof first === 'object' && second === undefined) {
    const found = lookUp(first, way.sources);
    if (found === undefined) return missing(`${pathText(first)} leads nowhere`, way);
    way.spend(found.value);
    return found.value;
  }
  let text = '';
  for (const part of template) {
    const value = typeof part === 'string' ? part : textOf(lookUp(part, way.sources)?.value);
    if (value === undefined)
      return missing(`${pathText(part as Reference)} is no value that fits into a text`, way);
    way.spend(value);
    text += value;
  }
  return text;
}

function missing(defect: string, { place }: Way): undefined {
  if (place === 'action') throw new Defect(defect);
}

/** Own properties and positions only, so that a path reads data and nothing that every object has. */
function lookUp(reference: Reference, sources: Sources): Readonly<{ value: unknown }> | undefined {
  let value = rootOf(reference, sources);
  for (const key of reference.path) {
    if (typeof value !== 'object' || value === null) return undefined;
    if (Array.isArray(value) && !/^(?:0|[1-9]\d*)$/.test(key)) return undefined;
    if (!Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value === undefined ? undefined : { value };
}

function rootOf(reference: Reference, { input, outputs, own }: Sources): unknown {
  switch (reference.root) {
    case 'input':
      return input;
    case 'own':
      return own;
    case 'steps':
      return Object.hasOwn(outputs, reference.step) ? outputs[reference.step] : undefined;
  }
}

/** Null has no text: an id of `order-null` helps nobody. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

/** About as many characters as its JSON has; stops counting where it is more than `most`. */
function sizeOf(value: unknown, most: number): number {
  let size = 0;
  const pending: unknown[] = [value];
  while (pending.length > 0 && size <= most) {
    const next = pending.pop();
    if (typeof next === 'string') size += next.length + 2;
    else if (typeof next !== 'object' || next === null) size += 5;
    else
      for (const [key, child] of Object.entries(next)) {
        size += Array.isArray(next) ? 1 : key.length + 4;
        pending.push(child);
      }
  }
  return size;
}

function templateOf(text: string): Template {
  const parsed: ParsedTemplate = parseTemplate(text);
  assert(parsed.ok, 'a workflow holds only references that can be read');
  return parsed.template;
}

function mapChildren(mapping: Exclude<Mapping, Scalar>, change: (child: Mapping) => Mapping): Mapping {
  if (isList(mapping)) return mapping.map(change);
  return Object.fromEntries(Object.entries(mapping).map(([key, child]) => [key, change(child)]));
}

type Scalar = string | number | boolean | null;

const isScalar = (mapping: Mapping): mapping is Scalar => typeof mapping !== 'object' || mapping === null;

const isList = (mapping: Exclude<Mapping, Scalar>): mapping is readonly Mapping[] => Array.isArray(mapping);
