import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The bill of materials (CycloneDX) of the server, with the packages that are installed here. */
export function serverSbom(): string {
  return sbomOf('.');
}

/**
 * The same of the client library. It is no workspace, so it gets a lock file with its dependencies in the versions that it is
 * tested with, those of the server's lock file. npm refuses a version that its manifest excludes.
 */
export function clientSbom(): string {
  const manifest = readManifest('packages/client');
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
  const { name, version, dependencies = {} } = manifest;
  const locked = { '': manifest, ...lockedOf(Object.keys(dependencies), packages) };
  const folder = mkdtempSync(join(tmpdir(), 'redrive-sbom-'));
  try {
    cpSync('packages/client/package.json', join(folder, 'package.json'));
    const lock = { name, version, lockfileVersion: 3, packages: locked };
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
    return sbomOf(folder, '--package-lock-only');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function sbomOf(folder: string, ...options: readonly string[]): string {
  const written = execFileSync(
    'npm',
    ['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--loglevel=error', ...options],
    {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  const sbom = JSON.parse(written) as { metadata: { component: { name: string } } };
  // npm takes the name of the folder.
  sbom.metadata.component.name = readManifest(folder).name;
  return `${JSON.stringify(sbom, null, 2)}\n`;
}

type Locked = Readonly<{ version: string; dependencies?: Readonly<Record<string, string>> }>;
type Manifest = Locked & Readonly<{ name: string }>;

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
}

type Lock = Readonly<{ packages: Readonly<Record<string, Locked>> }>;

/** The entries of these packages, and of everything that they depend on. */
function lockedOf(names: readonly string[], packages: Lock['packages']): Record<string, Locked> {
  const found: Record<string, Locked> = {};
  const left = [...names];
  for (let name = left.shift(); name !== undefined; name = left.shift()) {
    const path = `node_modules/${name}`;
    if (path in found) continue;
    for (const [place, locked] of Object.entries(packages))
      if (place === path || place.startsWith(`${path}/node_modules/`)) {
        found[place] = locked;
        left.push(...Object.keys(locked.dependencies ?? {}));
      }
  }
  return found;
}
