import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { inspect } from 'node:util';

import { loadConfig, type Config } from '../../src/config/config.ts';
import { ConfigError, type Problem } from '../../src/config/config-error.ts';

/** Whole configurations from files of their own, for tests. */
const scratch = mkdtempSync(join(tmpdir(), 'config-'));
after(() => rmSync(scratch, { recursive: true }));

/** A new folder with these files. */
export function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(scratch, 'case-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

const secretsDirOf = (secrets: Readonly<Record<string, string>>): string =>
  Object.keys(secrets).length === 0 ? join(scratch, 'no-secrets') : folderOf(secrets);

export type Case = Readonly<{
  files?: Readonly<Record<string, string>>;
  secrets?: Readonly<Record<string, string>>;
  env?: NodeJS.ProcessEnv;
  argv?: Parameters<typeof loadConfig>[0]['argv'];
}>;

/** Loads `config.yaml` of the files, if there is one, as the base. */
export function load({ files = {}, secrets = {}, env = {}, argv = {} }: Case): Config {
  const base = 'config.yaml' in files ? { configPath: join(folderOf(files), 'config.yaml') } : {};
  return loadConfig({ argv: { ...base, ...argv }, env, secretsDir: secretsDirOf(secrets) });
}

export const loadYaml = (text: string, env: NodeJS.ProcessEnv = {}): Config =>
  load({ files: { 'config.yaml': text }, env });

export function errorOf(run: () => Config): ConfigError {
  let config: Config;
  try {
    config = run();
  } catch (error) {
    assert(error instanceof ConfigError, inspect(error));
    return error;
  }
  return assert.fail(`the configuration was accepted: ${inspect(config)}`);
}

export const problemsOf = (run: () => Config): readonly Problem[] => errorOf(run).problems;

/** The only problem. */
export function problemOf(run: () => Config): Problem {
  const [problem, ...more] = problemsOf(run);
  assert(problem);
  assert.deepEqual(more, []);
  return problem;
}

/** What was said, if anything was wrong. */
export function messageOf(run: () => Config): string {
  try {
    return run().warnings.join('\n');
  } catch (error) {
    assert(error instanceof ConfigError, inspect(error));
    return error.message;
  }
}
