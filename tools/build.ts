import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { finishClient } from './finish-client.ts';

/**
 * Emits the packages that are published. The client first: packages/client/dist, CommonJS for Node 20 and later. Then
 * the server, which re-exports it: JavaScript and declarations in dist/, and beside them every other file of src/ (such
 * as migrations), except what only tests read. Last the console: dist/console/web. A failed build leaves no dist/, so
 * that nobody publishes an old one.
 * `node tools/build.ts client` builds the client only.
 */
const root = fileURLToPath(new URL('../', import.meta.url));
const compiler = fileURLToPath(import.meta.resolve('typescript/package.json')).replace(
  /package\.json$/,
  'bin/tsc',
);

const isBuilt =
  (await buildClient()) && (process.argv[2] === 'client' || ((await buildServer()) && buildConsole()));
if (!isBuilt) process.exitCode = 1;

function buildClient(): Promise<boolean> {
  const project = `${root}tools/tsconfig.client.json`;
  return build(
    `${root}packages/client/dist`,
    [
      ['--project', project, '--declaration', '--emitDeclarationOnly'],
      ['--project', project, '--removeComments'],
    ],
    () => finishClient(`${root}packages/client`),
  );
}

function buildServer(): Promise<boolean> {
  return build(`${root}dist`, [['--project', `${root}tools/tsconfig.build.json`]], async (dist) =>
    cpSync(`${root}src`, dist, { recursive: true, filter: isAsset }),
  );
}

async function build(
  dist: string,
  compilations: readonly (readonly string[])[],
  finish: (dist: string) => Promise<void>,
): Promise<boolean> {
  rmSync(dist, { recursive: true, force: true });
  let isDone = false;
  try {
    isDone = compilations.every((args) => compile(args));
    if (isDone) await finish(dist);
  } catch (error) {
    isDone = false;
    throw error;
  } finally {
    if (!isDone) rmSync(dist, { recursive: true, force: true });
  }
  return isDone;
}

/** The console, into the folder in which the built server looks for it. */
function buildConsole(): boolean {
  const args = [`${root}console/tools/build.ts`, `${root}dist/console/web`];
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status === 0;
}

function compile(args: readonly string[]): boolean {
  return spawnSync(process.execPath, [compiler, ...args], { stdio: 'inherit' }).status === 0;
}

function isAsset(source: string): boolean {
  return (
    !source.endsWith('.ts') &&
    source !== `${root}src/sdk` &&
    !['fixtures', 'golden'].includes(basename(source))
  );
}
