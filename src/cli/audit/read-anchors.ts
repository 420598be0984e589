import { UsageError } from '../exit-code.ts';
import { readText } from '../json-input.ts';
import type { Terminal } from '../terminal.ts';

/** A block as it was noted outside the database. */
export type Anchor = Readonly<{ block: number; hash: string }>;

/** Every line must be an anchor: one that is passed over would look as if it had been compared. */
export async function readAnchors(terminal: Terminal, file: string): Promise<readonly Anchor[]> {
  const text = await readText(terminal, { text: undefined, file, what: 'the file', options: '--anchors' });
  const anchors = text
    .split(/\r?\n/)
    .map((line, i) => ({ line, number: i + 1 }))
    .filter(({ line }) => line.trim() !== '')
    .map(({ line, number }) => {
      const anchor = readAnchor(line);
      if (anchor !== null) return anchor;
      throw new UsageError(`--anchors: line ${number} is not JSON with \`block\` and \`hash\``);
    });
  if (anchors.length === 0) throw new UsageError('--anchors: there are no anchors in it');
  return anchors;
}

function readAnchor(line: string): Anchor | null {
  try {
    const { block, hash } = JSON.parse(line) as Readonly<Record<string, unknown>>;
    if (typeof block !== 'number' || !Number.isSafeInteger(block) || block < 0) return null;
    return typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? { block, hash } : null;
  } catch {
    return null;
  }
}
