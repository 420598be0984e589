import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

export type Encoding = 'br' | 'gzip' | 'identity';

/** A file of the console in all encodings that the build has made. Its name contains the hash of its content. */
export type Asset = Readonly<{ type: string; bytes: ReadonlyMap<Encoding, Buffer> }>;

export type BuiltAssets = Readonly<{
  /** By the path below the prefix, such as `/assets/main-4f2a.js`. */
  files: ReadonlyMap<string, Asset>;
  /** What the page loads, as paths below the prefix. */
  entry: Readonly<{ script: string; styles: readonly string[]; preloads: readonly string[] }>;
}>;

type Chunk = Readonly<{
  file: string;
  isEntry?: boolean;
  css?: readonly string[];
  imports?: readonly string[];
}>;

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const encodings: readonly (readonly [Encoding, string])[] = [
  ['identity', ''],
  ['br', '.br'],
  ['gzip', '.gz'],
];

/** Reads the whole build: it has a few hundred kilobytes, and a later build cannot remove what is served. */
export async function readBuiltAssets(folder: string): Promise<BuiltAssets> {
  const names = await readdir(join(folder, 'assets'));
  const files = await Promise.all(
    names
      .filter((name) => types[extname(name)] !== undefined)
      .map(async (name) => [`/assets/${name}`, await readAsset(folder, name, names)] as const),
  );
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as Record<string, Chunk>;
  return { files: new Map(files), entry: entryOf(manifest) };
}

async function readAsset(folder: string, name: string, names: readonly string[]): Promise<Asset> {
  const made = encodings.filter(([, suffix]) => names.includes(name + suffix));
  const bytes = await Promise.all(
    made.map(
      async ([encoding, suffix]) =>
        [encoding, await readFile(join(folder, 'assets', name + suffix))] as const,
    ),
  );
  return { type: types[extname(name)] ?? '', bytes: new Map(bytes) };
}

function entryOf(manifest: Readonly<Record<string, Chunk>>): BuiltAssets['entry'] {
  const main = Object.values(manifest).find(({ isEntry }) => isEntry === true);
  if (main === undefined) throw new Error('the build of the console has no entry');
  const chunks = new Set<Chunk>();
  const collect = (chunk: Chunk): void => {
    if (chunks.has(chunk)) return;
    chunks.add(chunk);
    for (const name of chunk.imports ?? []) {
      const imported = manifest[name];
      if (imported !== undefined) collect(imported);
    }
  };
  collect(main);
  const all = [...chunks];
  return {
    script: `/${main.file}`,
    styles: [...new Set(all.flatMap(({ css = [] }) => css))].map((file) => `/${file}`),
    preloads: all.filter((chunk) => chunk !== main).map(({ file }) => `/${file}`),
  };
}

/** The best encoding that the client accepts; a type with the weight 0 is not accepted. */
export function pickEncoding(asset: Asset, accepted = ''): Encoding {
  const ranges = accepted.split(',').map((range) => range.trim().toLowerCase());
  const names = new Set(
    ranges.filter((range) => !/;\s*q=0(\.0*)?$/.test(range)).map((range) => range.split(';', 1)[0]?.trim()),
  );
  const best = (['br', 'gzip'] as const).find((encoding) => names.has(encoding) && asset.bytes.has(encoding));
  return best ?? 'identity';
}
