import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Emits the package that is published: JavaScript and declarations in dist/, and beside them every other file of
 * src/ (such as migrations), except what only tests read. A failed build leaves no dist/, so that nobody publishes an old one.
 */
const root = fileURLToPath(new URL('../', import.meta.url));

rmSync(`${root}dist`, { recursive: true, force: true });
const compiler = fileURLToPath(import.meta.resolve('typescript/package.json')).replace(
  /package\.json$/,
  'bin/tsc',
);
const compiled = spawnSync(process.execPath, [compiler, '--project', `${root}tools/tsconfig.build.json`], {
  stdio: 'inherit',
});
if (compiled.status === 0) {
  cpSync(`${root}src`, `${root}dist`, { recursive: true, filter: isAsset });
} else {
  rmSync(`${root}dist`, { recursive: true, force: true });
  process.exitCode = 1;
}

function isAsset(source: string): boolean {
  return !source.endsWith('.ts') && !['fixtures', 'golden'].includes(basename(source));
}
