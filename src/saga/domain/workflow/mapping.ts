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

/** What references can refer to. */
export type Sources = Readonly<{
  /** The saga's payload. */
  input: unknown;
  /** The responses of the done steps, by step name. */
  outputs: Readonly<Record<string, unknown>>;
  /** The response of the step that is being undone; undefined in an action, and if the step is in doubt. */
  own?: unknown;
}>;

/** In an action, a reference without a value is a defect of the workflow, and nothing is sent. */
export type Mapped<T = unknown> = Readonly<{ ok: true; value: T }> | Readonly<{ ok: false; defect: string }>;

/** The largest request; a short mapping could repeat a large payload many times. */
const MAX_MAPPED_CHARACTERS = 1024 * 1024;

/** The input of an action; without a mapping, the saga's payload. */
export function mapInput(mapping: Mapping | null, sources: Sources): Mapped {
  return fill(mapping, sources, 'action');
}

/**
 * The input of an undo, which must be sent whatever is known. A reference without a value is omitted: a key is dropped,
 * a list element or the whole message becomes null, so that list elements keep their positions.
 */
export function mapUndoInput(mapping: Mapping | null, sources: Sources): Mapped {
  return fill(mapping, sources, 'undo');
}

/**
 * The path of an HTTP method with its references filled in, each URL-encoded. Nothing can be omitted from a path, so a
 * reference without a value is a defect in an undo too. So is a value that would change the path: empty, or `..`.
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
      return { ok: false, defect: `${pathText(part)} has no value for the path` };
    text += encodeURIComponent(value.toWellFormed());
    if (text.length > MAX_PATH_CHARACTERS) return { ok: false, defect: 'the path is too long' };
  }
  return hasDotSegment(text)
    ? { ok: false, defect: 'the path has a . or .. segment' }
    : { ok: true, value: text };
}

const MAX_PATH_CHARACTERS = 8192;

/** URL parsers resolve these, encoded or not. */
export function hasDotSegment(path: string): boolean {
  const [plain = ''] = path.split(/[?#]/, 1);
  return plain.split(/[/\\]/).some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
}

/** Whether the string consists of exactly one reference, which then keeps its JSON type. */
export function isReference(mapping: Mapping): boolean {
  if (typeof mapping !== 'string') return false;
  const [first, second] = templateOf(mapping);
  return typeof first === 'object' && second === undefined;
}

/** All references with their paths in the mapping: `lines.0.sku`. */
export function referencesIn(mapping: Mapping): readonly Readonly<{ at: string; reference: Reference }>[] {
  return stringsIn(mapping, '').flatMap(({ at, text }) =>
    templateOf(text)
      .filter((part) => typeof part !== 'string')
      .map((reference) => ({ at, reference })),
  );
}

/** The mapping with its references in canonical spelling, and the flaws in them. */
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

/** Caught within this file and returned as a value. */
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

/** Undefined for what an undo omits. */
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
    if (found === undefined) return missing(`${pathText(first)} does not exist`, way);
    way.spend(found.value);
    return found.value;
  }
  let text = '';
  for (const part of template) {
    const value = typeof part === 'string' ? part : textOf(lookUp(part, way.sources)?.value);
    if (value === undefined)
      return missing(`${pathText(part as Reference)} is not a string, number or boolean`, way);
    way.spend(value);
    text += value;
  }
  return text;
}

function missing(defect: string, { place }: Way): undefined {
  if (place === 'action') throw new Defect(defect);
}

export function leadsSomewhere(reference: Reference, sources: Sources): boolean {
  return lookUp(reference, sources) !== undefined;
}

/** Own properties and array indexes only, so that a path cannot reach inherited properties. */
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

/** Null is not accepted: an id such as `order-null` is a bug. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

/** Approximate length of its JSON; stops counting above `most`. */
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
  assert(parsed.ok, 'references of a workflow were checked when it was parsed');
  return parsed.template;
}

function mapChildren(mapping: Exclude<Mapping, Scalar>, change: (child: Mapping) => Mapping): Mapping {
  if (isList(mapping)) return mapping.map(change);
  return Object.fromEntries(Object.entries(mapping).map(([key, child]) => [key, change(child)]));
}

type Scalar = string | number | boolean | null;

const isScalar = (mapping: Mapping): mapping is Scalar => typeof mapping !== 'object' || mapping === null;

const isList = (mapping: Exclude<Mapping, Scalar>): mapping is readonly Mapping[] => Array.isArray(mapping);
