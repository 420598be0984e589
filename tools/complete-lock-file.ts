import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Adds to package-lock.json what npm leaves out of it: optional packages for other platforms that the registry
 * mirror it was made with does not carry. Without their entries `npm ci` refuses the lock file everywhere.
 * To be run after every change of the dependencies: node tools/complete-lock-file.ts
 */
type Entry = { optionalDependencies?: Record<string, string> };
type LockFile = { packages: Record<string, Entry> };

const path = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(path, 'utf8')) as LockFile;
const missing = Object.entries(lock.packages)
  .filter(([name]) => name !== '')
  .flatMap(([, entry]) => Object.entries(entry.optionalDependencies ?? {}))
  .filter(([name]) => lock.packages[`node_modules/${name}`] === undefined);
const added = missing.map(([name, version]) => [`node_modules/${name}`, entryOf(name, version)] as const);
const sorted = Object.entries({ ...lock.packages, ...Object.fromEntries(added) }).sort(([a], [b]) =>
  a < b ? -1 : 1,
);

writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
process.stdout.write(`${added.length} entries added\n`);

/** The platform is in the name: `binding-linux-arm64-musl`. */
function entryOf(name: string, version: string): Entry & Record<string, unknown> {
  const [os, cpu, abi] = (name.split('/').at(-1) ?? '').replace(/^binding-/, '').split('-');
  const libc =
    os === 'linux' && abi !== undefined ? { libc: [abi.startsWith('musl') ? 'musl' : 'glibc'] } : {};
  return { version, cpu: [cpu], dev: true, ...libc, optional: true, os: [os] };
}
