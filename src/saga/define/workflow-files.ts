import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { checkMethods, type AskMethods } from '../domain/workflow/check-methods.ts';
import type { KnownServices } from '../domain/workflow/parse-workflow.ts';
import type { Flaw, Workflow } from '../domain/workflow/workflow.ts';
import { storeWorkflow } from './workflows-table.ts';
import { MAX_WORKFLOW_BYTES, readWorkflow } from './workflow-yaml.ts';

/** A skipped file, and why. */
export type BadFile = Readonly<{ file: string; reason: string }>;

export type WorkflowFiles = Service & Readonly<{ bad(): readonly BadFile[] }>;

export type WorkflowFilesDeps = Readonly<{
  db: Queryable;
  log: Logger;
  /** Relative to the working directory; a missing directory counts as empty. */
  directory: string;
  services: KnownServices;
  /** Must not ask services over the network, which may be down. */
  askMethods: AskMethods;
}>;

const maxFiles = 1000;
const maxReason = 500;

/**
 * Registers the workflows of a folder when the process starts. A bad file is skipped. Files are read in the order of
 * their names: of two files with the same workflow the second one is bad, in every replica.
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
        log.warn({ file: join(directory, file), error: reason }, 'skipped bad workflow file');
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
    reason: index < maxFiles ? null : `the folder has more than ${maxFiles} workflows`,
  }));
}

/** Why the file is bad, or null. */
async function registerFile(
  { db, directory, services, askMethods }: WorkflowFilesDeps,
  file: string,
  owners: Map<string, string>,
): Promise<string | null> {
  const text = await readText(join(directory, file));
  if ('reason' in text) return text.reason;
  const parsed = readWorkflow(text.text, services);
  if (!parsed.ok) return parsed.flaws.map(describeFlaw).join('; ');
  const { workflow } = parsed;
  const { flaws } = await checkMethods(askMethods, workflow);
  if (flaws.length > 0) return flaws.map(describeFlaw).join('; ');
  const owner = owners.get(workflow.name);
  if (owner !== undefined) return `the workflow ${workflow.name} is already defined in ${owner}`;
  owners.set(workflow.name, file);
  return register(db, workflow);
}

/** About ten seconds: each attempt waits up to half a second for the lock. */
const busyTries = 20;

/** Throws, so that the process does not start, if the database is unavailable or a transaction stays open. */
async function register(db: Queryable, workflow: Workflow): Promise<string | null> {
  for (let tries = 1; ; tries += 1)
    try {
      await storeWorkflow(db, workflow, { isFromFile: true });
      return null;
    } catch (error) {
      if (codeOf(error) === 'SYS_SAGA_BUSY' && tries < busyTries) continue;
      if (troubleOf(error) !== 'data') throw error;
      return `cannot be stored: ${messageOf(error)}`;
    }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

async function readText(path: string): Promise<Readonly<{ text: string }> | Readonly<{ reason: string }>> {
  try {
    const about = await stat(path);
    // Reading a pipe would block.
    if (!about.isFile()) return { reason: 'is not a regular file' };
    if (about.size > MAX_WORKFLOW_BYTES)
      return { reason: `must not be larger than ${MAX_WORKFLOW_BYTES} bytes` };
    const bytes = await readFile(path);
    return { text: utf8.decode(bytes) };
  } catch (error) {
    const code = codeOf(error);
    return {
      reason: code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'is not UTF-8' : `cannot be read: ${code}`,
    };
  }
}

function describeFlaw({ step, field, message }: Flaw): string {
  return [...(step === null ? [] : [`step ${step}`]), ...(field === '' ? [] : [field]), message].join(': ');
}
