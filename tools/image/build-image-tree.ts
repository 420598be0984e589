import { execFile } from 'node:child_process';
import { chmod, cp, lstat, mkdir, readFile, rename, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { copyOf, readDockerfile, vectorOf, type Instruction, type Stage } from './dockerfile.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** What a container of the image would run. */
export type ImageTree = Readonly<{
  /** The files that the image adds to its base. */
  folder: string;
  workDir: string;
  env: Readonly<Record<string, string>>;
  user: number;
  entrypoint: readonly string[];
  command: readonly string[];
}>;

/** The clone has installed already what this would install. */
const installsEverything = 'npm ci --ignore-scripts --no-fund --no-audit';

/**
 * Builds the tree of files that deploy/Dockerfile describes, without a container engine: each stage is a folder, COPY
 * copies, and RUN runs on this machine, which it cannot change.
 */
export async function buildImageTree(scratch: string): Promise<ImageTree> {
  const { stages } = readDockerfile(await readFile(join(root, 'deploy/Dockerfile'), 'utf8'));
  for (const stage of stages) await buildStage(scratch, stage);
  const last = stages.at(-1);
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  const all = (keyword: Instruction['keyword']): readonly string[] =>
    last.instructions.filter((instruction) => instruction.keyword === keyword).map(({ text }) => text);
  return {
    folder: folderOf(scratch, last),
    workDir: all('WORKDIR').at(-1) ?? '/',
    env: Object.fromEntries(all('ENV').map(assignmentOf)),
    user: Number(all('USER').at(-1)?.split(':')[0]),
    entrypoint: vectorOf(all('ENTRYPOINT').at(-1) ?? '') ?? [],
    command: vectorOf(all('CMD').at(-1) ?? '') ?? [],
  };
}

function assignmentOf(text: string): readonly [string, string] {
  const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(text) ?? [];
  return [name, value.replace(/^"(.*)"$/, '$1')];
}

function folderOf(scratch: string, { name }: Pick<Stage, 'name'>): string {
  return join(scratch, name === '' ? 'image' : name);
}

async function buildStage(scratch: string, stage: Stage): Promise<void> {
  const folder = folderOf(scratch, stage);
  let workDir = '/';
  for (const { keyword, text } of stage.instructions) {
    if (keyword === 'WORKDIR') {
      workDir = text;
      await mkdir(join(folder, workDir), { recursive: true });
    } else if (keyword === 'COPY') await copy(scratch, folder, workDir, text);
    else if (keyword === 'RUN') await runCommand(join(folder, workDir), text);
  }
}

async function copy(scratch: string, folder: string, workDir: string, text: string): Promise<void> {
  const { from, sources, target } = copyOf(text);
  const context = from === undefined ? root : folderOf(scratch, { name: from });
  for (const source of sources) {
    const path = join(context, source);
    const isFolder = (await lstat(path)).isDirectory();
    const name = isFolder || !target.endsWith('/') ? '' : basename(source);
    const to = join(folder, resolve(workDir, target), name);
    await mkdir(dirname(to), { recursive: true });
    // No later stage copies the same files, and moving them is faster.
    if (from !== undefined) await rename(path, to);
    else await cp(path, to, { recursive: true, filter: (file) => !file.endsWith('.test.ts') });
  }
}

async function runCommand(cwd: string, command: string): Promise<void> {
  if (command === installsEverything) return symlink(join(root, 'node_modules'), join(cwd, 'node_modules'));
  const npmCache = join(homedir(), '.npm');
  await mkdir(npmCache, { recursive: true });
  const binds = [cwd, npmCache].flatMap((path) => ['--bind', path, path]);
  const sandbox = ['--ro-bind', '/', '/', '--dev', '/dev', '--tmpfs', '/run/user', ...binds, '--chdir', cwd];
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };
  await run('bwrap', [...sandbox, '/bin/sh', '-c', command], { env, maxBuffer: 16 * 1024 * 1024 });
}

/** So that an account other than the one that built the tree reaches it, as in an image. */
export async function openTree(scratch: string): Promise<void> {
  await chmod(scratch, 0o755);
}
