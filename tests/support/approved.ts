import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';

/**
 * Compares with a committed file that somebody has read and approved. `UPDATE_SNAPSHOTS=1 npm test` writes the
 * file anew; the difference then shows in the commit.
 */
export async function assertApproved(file: URL, actual: string): Promise<void> {
  if (process.env['UPDATE_SNAPSHOTS'] === '1') return writeFile(file, actual);
  const approved = await readFile(file, 'utf8').catch(() => '');
  assert.equal(actual, approved, `${file.pathname} differs; UPDATE_SNAPSHOTS=1 writes it anew`);
}
