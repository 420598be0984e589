import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Links between documents: every file and every heading that one names exists. */

const root = fileURLToPath(new URL('../../', import.meta.url));
const documents = ['*.md', 'docs/**/*.md', 'examples/**/*.md', 'deploy/**/*.md', 'packages/*/*.md'];

const texts = new Map<string, string>();
for await (const file of glob(documents, { cwd: root, exclude: (name) => name.includes('node_modules') }))
  texts.set(file, withoutCode(await readFile(`${root}${file}`, 'utf8')));

test('every relative link and every anchor of the documents has its target', () => {
  assert.ok(texts.size > 100, `only ${texts.size} documents`);
  const broken = [...texts].flatMap(([file, text]) =>
    linksIn(text).flatMap((link) => {
      const flaw = flawOf(file, link);
      return flaw === null ? [] : [`${file}: ${link}: ${flaw}`];
    }),
  );
  assert.deepEqual(broken, []);
});

/** Code has brackets of its own. */
function withoutCode(text: string): string {
  return text
    .replaceAll(/^```[^]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ' '));
}

/** Those that stay in the repository. */
function linksIn(text: string): readonly string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => !/^[a-z]+:/.test(link));
}

function flawOf(file: string, link: string): string | null {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : posix.join(posix.dirname(file), path);
  if (target.startsWith('..') || !existsSync(`${root}${target}`)) return 'no such file';
  if (anchor === undefined) return null;
  const text = texts.get(target);
  if (text === undefined) return 'an anchor needs a document';
  return anchorsOf(text).has(anchor) ? null : 'no such heading';
}

/** As GitHub makes them: lower case, punctuation dropped, blanks to hyphens; repeated ones are numbered. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.matchAll(/^#+ +(.*)$/gm)) {
    const name = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-');
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
