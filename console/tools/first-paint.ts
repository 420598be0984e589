import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * How many bytes a browser loads before it shows a page, compressed with gzip: the entry, the page, and all that they
 * import. `node console/tools/first-paint.ts [FOLDER OF A BUILD]` prints it for every page.
 */
export type FirstPaint = Readonly<{ page: string; script: number; style: number }>;

type Chunk = Readonly<{
  file: string;
  isEntry?: boolean;
  css?: readonly string[];
  imports?: readonly string[];
}>;

export async function readFirstPaints(folder: string): Promise<readonly FirstPaint[]> {
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as Record<string, Chunk>;
  const entry = Object.keys(manifest).find((name) => manifest[name]?.isEntry === true) ?? '';
  const pages = Object.keys(manifest).filter((name) => /^features\/.*-page\.tsx$/.test(name));
  return Promise.all(pages.map((page) => sizeOf(folder, page, withImports(manifest, [entry, page]))));
}

function withImports(
  manifest: Readonly<Record<string, Chunk>>,
  names: readonly string[],
): ReadonlySet<Chunk> {
  const found = new Set<Chunk>();
  const add = (name: string): void => {
    const chunk = manifest[name];
    if (chunk === undefined || found.has(chunk)) return;
    found.add(chunk);
    chunk.imports?.forEach(add);
  };
  names.forEach(add);
  return found;
}

async function sizeOf(folder: string, page: string, chunks: ReadonlySet<Chunk>): Promise<FirstPaint> {
  const sum = async (files: Iterable<string>): Promise<number> => {
    const sizes = [...new Set(files)].map(async (file) => (await stat(join(folder, `${file}.gz`))).size);
    return (await Promise.all(sizes)).reduce((all, one) => all + one, 0);
  };
  return {
    page,
    script: await sum([...chunks].map(({ file }) => file)),
    style: await sum([...chunks].flatMap(({ css = [] }) => css)),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? fileURLToPath(new URL('../../dist/console', import.meta.url));
  for (const { page, script, style } of await readFirstPaints(folder))
    process.stdout.write(
      `${(script / 1000).toFixed(1).padStart(7)} kB script ${(style / 1000).toFixed(1).padStart(6)} kB style  ${page}\n`,
    );
}
