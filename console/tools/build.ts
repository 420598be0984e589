import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'vite';
import { viteOptions } from './vite-options.ts';

/** `node console/tools/build.ts FOLDER` builds the console into a folder, with compressed copies of every file. */
const [, , folder] = process.argv;
if (folder === undefined) throw new Error('usage: node console/tools/build.ts FOLDER');
const outDir = resolve(folder);

await build({
  ...viteOptions,
  build: {
    outDir,
    emptyOutDir: true,
    manifest: 'manifest.json',
    assetsInlineLimit: 0,
    target: 'es2023',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

const assets = join(outDir, 'assets');
await Promise.all((await readdir(assets)).map((name) => compress(join(assets, name))));

async function compress(file: string): Promise<void> {
  const bytes = await readFile(file);
  const brotli = await promisify(brotliCompress)(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
  await Promise.all([
    writeFile(`${file}.br`, brotli),
    writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: 9 })),
  ]);
}
