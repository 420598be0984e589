import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { ParsedWorkflow } from '../domain/parse-workflow.ts';
import type { Flaw, Workflow } from '../domain/workflow.ts';
import type { WorkflowStore } from '../usecase/workflow-ports.ts';

/** A file that is not used, and why. */
export type BadFile = Readonly<{ file: string; reason: string }>;

export type WorkflowFiles = Service & Readonly<{ bad(): readonly BadFile[] }>;

export type WorkflowFilesDeps = Readonly<{
  /** Relative to the working directory; where there is none, there are no files. */
  directory: string;
  workflows: Pick<WorkflowStore, 'register'>;
  /** What the text of a file says. */
  read: (text: string) => ParsedWorkflow;
  /** What else is known to be wrong with it, without asking anybody who may be away. */
  check: (workflow: Workflow) => Promise<readonly Flaw[]>;
  /** More than a file may have. */
  maxBytes: number;
  log: Logger;
}>;

const maxFiles = 1000;
const maxReason = 500;

/**
 * Registers the workflows of a folder when the process starts. One bad file keeps neither the others nor the process
 * from starting. Names are taken in their order: of two files with one workflow the second is bad, in every replica.
 */
export function createWorkflowFiles(deps: WorkflowFilesDeps): WorkflowFiles {
  const { directory, log } = deps;
  let bad: readonly BadFile[] = [];
  return {
    name: 'workflow files',
    bad: () => bad,
    async start() {
      const found: BadFile[] = [];
      const owners = new Map<string, string>();
      for (const { file, reason } of await listFiles(directory)) {
        const flaw = reason ?? (await registerFile(deps, file, owners));
        if (flaw !== null) found.push({ file, reason: flaw.slice(0, maxReason) });
      }
      for (const { file, reason } of found)
        log.warn({ file: join(directory, file), error: reason }, 'a workflow file is bad and was skipped');
      bad = found;
    },
    async stop() {},
  };
}

type Listed = Readonly<{ file: string; reason: string | null }>;

async function listFiles(directory: string): Promise<readonly Listed[]> {
  let names: readonly string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    return [{ file: '.', reason: `the folder cannot be read: ${codeOf(error) ?? messageOf(error)}` }];
  }
  const files = names.filter((name) => /\.ya?ml$/i.test(name)).toSorted();
  return files.map((file, index) => ({
    file,
    reason: index < maxFiles ? null : `a folder has at most ${maxFiles} workflows`,
  }));
}

/** Why the file is bad, or null. */
async function registerFile(
  { directory, workflows, read, check, maxBytes }: WorkflowFilesDeps,
  file: string,
  owners: Map<string, string>,
): Promise<string | null> {
  const text = await readText(join(directory, file), maxBytes);
  if ('reason' in text) return text.reason;
  const parsed = read(text.text);
  if (!parsed.ok) return parsed.flaws.map(describeFlaw).join('; ');
  const { workflow } = parsed;
  const flaws = await check(workflow);
  if (flaws.length > 0) return flaws.map(describeFlaw).join('; ');
  const owner = owners.get(workflow.name);
  if (owner !== undefined) return `the workflow ${workflow.name} is in ${owner} already`;
  owners.set(workflow.name, file);
  return register(workflows, workflow);
}

/** A database that is away is no fault of the file: the process does not start without it. */
async function register(
  workflows: WorkflowFilesDeps['workflows'],
  workflow: Workflow,
): Promise<string | null> {
  try {
    await workflows.register(workflow, { isFromFile: true });
    return null;
  } catch (error) {
    if (troubleOf(error) !== 'data') throw error;
    return `it cannot be stored: ${messageOf(error)}`;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

async function readText(
  path: string,
  maxBytes: number,
): Promise<Readonly<{ text: string }> | Readonly<{ reason: string }>> {
  try {
    const about = await stat(path);
    // A pipe would never end.
    if (!about.isFile()) return { reason: 'it is no file' };
    if (about.size > maxBytes) return { reason: `must not be larger than ${maxBytes} bytes` };
    const bytes = await readFile(path);
    return { text: utf8.decode(bytes) };
  } catch (error) {
    const code = codeOf(error);
    return {
      reason: code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is no UTF-8' : `it cannot be read: ${code}`,
    };
  }
}

function describeFlaw({ step, field, message }: Flaw): string {
  return [...(step === null ? [] : [`step ${step}`]), ...(field === '' ? [] : [field]), message].join(': ');
}
