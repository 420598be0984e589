import { isScalar, Lexer, LineCounter, parseDocument, visit, type Document } from 'yaml';
import {
  parseWorkflow,
  type KnownServices,
  type ParsedWorkflow,
  type UnknownServices,
} from '../domain/workflow/parse-workflow.ts';
import type { Flaw } from '../domain/workflow/workflow.ts';

/** Far more than anybody writes by hand. */
export const MAX_WORKFLOW_BYTES = 256 * 1024;
/** The parser takes 0.1 s for this many, which blocks the event loop; about 1700 lines. */
const MAX_TOKENS = 10_000;
/** One error often causes others. */
const MAX_FAULTS = 10;

/** Parses a workflow from YAML or JSON text. */
export function readWorkflow(
  text: string,
  services: KnownServices | null,
  unknownServices?: UnknownServices,
): ParsedWorkflow {
  const read = readYaml(text);
  if ('flaws' in read) return { ok: false, flaws: read.flaws };
  return parseWorkflow(read.data, services, unknownServices);
}

type ReadYaml = Readonly<{ data: unknown }> | Readonly<{ flaws: readonly Flaw[] }>;

/** An error at an offset in the text. */
type Fault = Readonly<{ offset: number; message: string }>;

/**
 * Parses one document of plain data. The input is untrusted: aliases are refused, because a few lines could expand
 * without bound, and so are tags outside the core schema and duplicate keys.
 */
function readYaml(text: string): ReadYaml {
  if (text.length > MAX_WORKFLOW_BYTES || Buffer.byteLength(text) > MAX_WORKFLOW_BYTES)
    return refuse(`must not be larger than ${MAX_WORKFLOW_BYTES} bytes`);
  if (hasTooManyTokens(text)) return refuse(`must not have more than ${MAX_TOKENS} tokens`);
  const lineCounter = new LineCounter();
  const document = withoutStacks(() =>
    parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      stringKeys: true,
      // The parser's own check is quadratic; `forbiddenIn` does it.
      uniqueKeys: false,
      // Set explicitly, these also apply to a document that declares YAML 1.1.
      schema: 'core',
      resolveKnownTags: false,
      merge: false,
    }),
  );
  try {
    const faults = faultsIn(document, text);
    if (faults.length === 0) return { data: document.toJS() };
    return {
      flaws: faults.slice(0, MAX_FAULTS).map(({ offset, message }) => {
        const { line, col } = lineCounter.linePos(offset);
        return { step: null, field: `line ${line}, column ${col}`, message };
      }),
    };
  } catch (error) {
    if (error instanceof RangeError) return tooDeep();
    throw error;
  }
}

/** Tokenizing takes a tenth of the time of parsing. */
function hasTooManyTokens(text: string): boolean {
  let tokens = 0;
  for (const _ of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > MAX_TOKENS) return true;
  }
  return false;
}

/** The parser creates an Error per fault, and stack traces are most of their cost. */
function withoutStacks<T>(parse: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return parse();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function faultsIn(document: Document.Parsed, text: string): readonly Fault[] {
  const said = [...document.errors, ...document.warnings];
  if (said.length === 0) return forbiddenIn(document);
  if (said.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) throw new RangeError('nested too deeply');
  return said.slice(0, MAX_FAULTS).map(({ code, pos: [offset] }) => {
    const words = `is not valid YAML: ${code.toLowerCase().replaceAll('_', ' ')}`;
    const hint = lineAt(text, offset).includes('${') ? '; quote references: "${input.id}"' : '';
    return { offset, message: words + hint };
  });
}

function forbiddenIn(document: Document.Parsed): readonly Fault[] {
  const faults: Fault[] = [];
  visit(document, {
    Alias: (_, { range }) => void faults.push({ offset: range?.[0] ?? 0, message: 'must not be an alias' }),
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value)) faults.push({ offset: key.range?.[0] ?? 0, message: 'is a duplicate key' });
        seen.add(key.value);
      }
    },
  });
  return faults;
}

function lineAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset);
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, end === -1 ? text.length : end);
}

const refuse = (message: string): ReadYaml => ({ flaws: [{ step: null, field: '', message }] });

const tooDeep = (): ReadYaml => refuse('is nested too deeply');
