import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { lockImages } from './image/lock-images.ts';
import { clientSbom, serverSbom } from './sbom.ts';

/**
 * `node tools/release.ts [--dry-run]`: packs both packages of a clean, described commit, with bills of materials (CycloneDX),
 * checksums, and an unsigned in-toto statement that names the commit. Publishes nothing. With --dry-run it only checks,
 * and prints what it would do.
 *
 * With `--image node:24-trixie-slim=sha256:…` for each image that deploy/Dockerfile names, it only writes these digests, to
 * deploy/Dockerfile and deploy/images.lock: they are committed before the release.
 */
const folder = 'release';
/** In the order in which they are published: the server depends on the client. */
const packages = ['packages/client', '.'];
const dockerfile = 'deploy/Dockerfile';
const imageLock = 'deploy/images.lock';
const { 'dry-run': isDryRun = false, image: images = [] } = parseArgs({
  options: { 'dry-run': { type: 'boolean' }, image: { type: 'string', multiple: true } },
}).values;

if (images.length > 0) writeImages();
else if (!isRefused(findProblems()))
  if (isDryRun)
    process.stdout.write(
      `would write ${folder}/: both packages, sbom.cdx.json, sbom-client.cdx.json, SHA256SUMS, provenance.json\n`,
    );
  else release();

function isRefused(problems: readonly string[]): boolean {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
  return problems.length > 0;
}

function writeImages(): void {
  const locked = lockImages(readFileSync(dockerfile, 'utf8'), images);
  if (isRefused(locked.problems)) return;
  if (!isDryRun) {
    writeFileSync(dockerfile, locked.dockerfile);
    writeFileSync(imageLock, locked.lock);
  }
  process.stdout.write(
    `${isDryRun ? 'would write' : 'wrote'} ${imageLock} and ${dockerfile}:\n${locked.lock}`,
  );
}

function findProblems(): readonly string[] {
  const { version, dependencies } = manifest();
  const client = manifest('packages/client');
  const changed = git('status', '--porcelain');
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  const heading = new RegExp(String.raw`^## \[?${version.replaceAll('.', String.raw`\.`)}\]?(?:\s|$)`, 'm');
  return [
    ...(changed === '' ? [] : [`uncommitted changes:\n${changed}`]),
    ...(heading.test(changelog) ? [] : [`CHANGELOG.md has no section for ${version}`]),
    ...(client.version === version && dependencies?.[client.name] === version
      ? []
      : [`${client.name} and the dependency on it must have the version ${version}`]),
  ];
}

function release(): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const one of packages)
    execFileSync('npm', ['pack', '--silent', '--pack-destination', resolve(folder)], { cwd: one });
  writeFileSync(join(folder, 'sbom.cdx.json'), serverSbom());
  writeFileSync(join(folder, 'sbom-client.cdx.json'), clientSbom());
  const subjects = readdirSync(folder).map((name) => ({
    name,
    digest: { sha256: sha256Of(join(folder, name)) },
  }));
  const sums = subjects.map(({ name, digest }) => `${digest.sha256}  ${name}\n`);
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
  writeFileSync(join(folder, 'provenance.json'), `${JSON.stringify(statementOf(subjects), null, 2)}\n`);
  process.stdout.write(sums.join(''));
}

function statementOf(subject: readonly object[]): object {
  const commit = git('rev-parse', 'HEAD');
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${manifest().homepage}/tools/release.ts`,
        externalParameters: {},
        resolvedDependencies: [{ uri: manifest().homepage, digest: { gitCommit: commit } }],
      },
      runDetails: { builder: { id: `node ${process.version}` } },
    },
  };
}

type Manifest = Readonly<{
  name: string;
  version: string;
  homepage: string;
  dependencies?: Readonly<Record<string, string>>;
}>;

function manifest(of = '.'): Manifest {
  return JSON.parse(readFileSync(join(of, 'package.json'), 'utf8')) as Manifest;
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).trim();
}

function sha256Of(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
