import { isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml';
import { parseWorkflow, type KnownServices, type ParsedWorkflow } from '../domain/parse-workflow.ts';
import type { Flaw } from '../domain/workflow.ts';

/** Far more than a person writes. */
export const MAX_WORKFLOW_BYTES = 256 * 1024;
/** One fault often brings others behind it. */
const MAX_FAULTS = 10;

/** A workflow from the text of a file or a request, in YAML or in JSON, which is YAML. */
export function readWorkflow(text: string, services: KnownServices | null): ParsedWorkflow {
  const read = readYaml(text);
  return 'flaws' in read ? { ok: false, flaws: read.flaws } : parseWorkflow(read.data, services);
}

type ReadYaml = Readonly<{ data: unknown }> | Readonly<{ flaws: readonly Flaw[] }>;

/** A place in the text, from its beginning, and what is wrong there. */
type Fault = Readonly<{ offset: number; message: string }>;

/**
 * One document of plain data. Whoever sends it may mean harm, so it has no aliases, which a few lines could unfold
 * without end, no tags but those of the core schema, and no key twice, of which one would be lost without a word.
 */
function readYaml(text: string): ReadYaml {
  if (text.length > MAX_WORKFLOW_BYTES || Buffer.byteLength(text) > MAX_WORKFLOW_BYTES)
    return refuse(`must not be larger than ${MAX_WORKFLOW_BYTES} bytes`);
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    stringKeys: true,
    // Its own search takes minutes for a text of many keys; ours is below.
    uniqueKeys: false,
    // Said here, they hold for a document that calls itself YAML 1.1 too.
    schema: 'core',
    resolveKnownTags: false,
    merge: false,
  });
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

function faultsIn(document: Document.Parsed, text: string): readonly Fault[] {
  const said = [...document.errors, ...document.warnings];
  if (said.length === 0) return forbiddenIn(document);
  if (said.some(({ code }) => code === 'RESOURCE_EXHAUSTION')) throw new RangeError('nested too deeply');
  return said.slice(0, MAX_FAULTS).map(({ code, pos: [offset] }) => {
    const words = `is no YAML that is read here: ${code.toLowerCase().replaceAll('_', ' ')}`;
    const hint = lineAt(text, offset).includes('${') ? '; a reference stands in quotes: "${input.id}"' : '';
    return { offset, message: words + hint };
  });
}

function forbiddenIn(document: Document.Parsed): readonly Fault[] {
  const faults: Fault[] = [];
  visit(document, {
    Alias: (_, { range }) =>
      void faults.push({ offset: range?.[0] ?? 0, message: 'must not be an alias: write it out' }),
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (seen.has(key.value))
          faults.push({ offset: key.range?.[0] ?? 0, message: 'must not be a key that is there twice' });
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

const tooDeep = (): ReadYaml => refuse('must not be nested so deeply');
