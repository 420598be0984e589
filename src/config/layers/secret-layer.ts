import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf } from '../../kernel/errors.ts';
import type { Problem } from '../config-error.ts';
import type { Entry, Layer } from './layer.ts';
import { trimSecret } from './secret.ts';

/** The files that an agent such as Vault's mounts, and the keys that they hold. */
const FILES = {
  'db-username': 'database.user',
  'db-password': 'database.password',
  'kafka-sasl-username': 'kafka.sasl.username',
  'kafka-sasl-password': 'kafka.sasl.password',
} as const;

/** A file that is not there says nothing; one that is there and cannot be read is a problem. */
export function secretLayer(folder: string): Layer {
  const entries: Entry[] = [];
  const problems: Problem[] = [];
  for (const [name, path] of Object.entries(FILES)) {
    const file = join(folder, name);
    try {
      entries.push({ path, value: trimSecret(readFileSync(file, 'utf8')), source: file, file });
    } catch (error) {
      const code = codeOf(error) ?? 'unknown error';
      if (code !== 'ENOENT' && code !== 'ENOTDIR')
        problems.push({ path, reason: `the secret file cannot be read: ${code}`, source: file });
    }
  }
  return { entries, problems, warnings: [] };
}
