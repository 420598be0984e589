import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

export type Manifest = Readonly<{ version: string; dependencies?: Readonly<Record<string, string>> }> &
  Readonly<Record<string, unknown>>;

/** Packs both packages from a clone in which nothing was built, as a release does; `folder` gets the tarballs. */
export async function packPackages(folder: string): Promise<void> {
  const clone = join(folder, 'clone');
  await cloneTo(clone);
  for (const name of ['packages/client', '.'])
    await run('npm', ['pack', '--pack-destination', folder], { cwd: join(clone, name) });
}

/** What git knows of the working copy, and so nothing that was built. */
async function cloneTo(clone: string): Promise<void> {
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  });
  for (const file of stdout.split('\0').filter((name) => name !== ''))
    await cp(join(root, file), join(clone, file)).catch(ignoreDeleted);
  await mkdir(join(clone, 'node_modules/@redrive'), { recursive: true });
  for (const name of await readdir(join(root, 'node_modules')))
    if (name !== '@redrive') await linkPackage(name, clone);
  await symlink(join(clone, 'src/sdk'), join(clone, 'node_modules/@redrive/client'));
}

function ignoreDeleted(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

/** Makes an installed package of the working copy one of that project. */
export async function linkPackage(name: string, project: string): Promise<void> {
  const link = join(project, 'node_modules', name);
  await mkdir(dirname(link), { recursive: true });
  await symlink(join(root, 'node_modules', name), link);
}

/** Installs a tarball with what it declares as its dependencies, and nothing else; returns its folder. */
export async function installPacked(name: string, tarball: string, project: string): Promise<string> {
  const installed = join(project, 'node_modules', name);
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  const { dependencies = {} } = await manifestOf(installed);
  for (const dependency of Object.keys(dependencies))
    if (dependency !== '@redrive/client') await linkPackage(dependency, project).catch(ignorePresent);
  return installed;
}

function ignorePresent(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

export async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}
