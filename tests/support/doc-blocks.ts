import { glob, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** A fenced block of a document. */
export type DocBlock = Readonly<{
  /** `README.md > Jobs > ts`; where a section has several of a language, with its number: `… > ts 2`. */
  id: string;
  language: string;
  text: string;
}>;

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The blocks of the READMEs and of everything below docs/, in order. */
export async function readDocBlocks(): Promise<readonly DocBlock[]> {
  const files: string[] = [];
  for await (const file of glob(['README.md', 'packages/*/README.md', 'docs/**/*.md'], { cwd: root }))
    files.push(file);
  const blocks = files
    .toSorted()
    .map(async (file) => blocksOf(file, await readFile(`${root}${file}`, 'utf8')));
  return (await Promise.all(blocks)).flat();
}

export function blocksOf(file: string, document: string): readonly DocBlock[] {
  const blocks: DocBlock[] = [];
  const counts = new Map<string, number>();
  let heading = '';
  let open: Readonly<{ language: string; lines: string[] }> | undefined;
  for (const line of document.split('\n')) {
    const [, language] = /^```(\w*)/.exec(line) ?? [];
    if (open !== undefined && language === '') {
      const place = `${file} > ${heading} > ${open.language}`;
      const nth = (counts.get(place) ?? 0) + 1;
      counts.set(place, nth);
      const id = nth === 1 ? place : `${place} ${nth}`;
      blocks.push({ id, language: open.language, text: open.lines.join('\n') });
      open = undefined;
    } else if (open !== undefined) open.lines.push(line);
    else if (language !== undefined) open = { language, lines: [] };
    else heading = /^#+ (.*)/.exec(line)?.[1] ?? heading;
  }
  return blocks;
}
