import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `node tools/release.ts [--dry-run]`: packs the server of a clean, described commit, with its bill of materials (CycloneDX),
 * checksums, and an unsigned in-toto statement that names the commit. Publishes nothing. With --dry-run it only checks,
 * and prints what it would do.
 */
const folder = 'release';
const isDryRun = process.argv.includes('--dry-run');

const problems = findProblems();
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
else if (isDryRun)
  process.stdout.write(`would write ${folder}/: package, sbom.cdx.json, SHA256SUMS, provenance.json\n`);
else release();

function findProblems(): readonly string[] {
  const { version } = manifest();
  const changed = git('status', '--porcelain');
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  const heading = new RegExp(String.raw`^## \[?${version.replaceAll('.', String.raw`\.`)}\]?(?:\s|$)`, 'm');
  return [
    ...(changed === '' ? [] : [`uncommitted changes:\n${changed}`]),
    ...(heading.test(changelog) ? [] : [`CHANGELOG.md has no section for ${version}`]),
  ];
}

function release(): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  run('npm', 'pack', '--pack-destination', folder);
  writeFileSync(join(folder, 'sbom.cdx.json'), run('npm', 'sbom', '--sbom-format=cyclonedx', '--omit=dev'));
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

function manifest(): Readonly<{ version: string; homepage: string }> {
  return JSON.parse(readFileSync('package.json', 'utf8')) as { version: string; homepage: string };
}

function git(...args: readonly string[]): string {
  return run('git', ...args).trim();
}

function run(program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}

function sha256Of(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
