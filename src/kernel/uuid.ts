import { randomFillSync } from 'node:crypto';
import type { Clock } from './clock.ts';

/** As JSON Schema writes it, without flags. */
export const UUID_PATTERN = `^${[8, 4, 4, 4, 12].map((length) => `[0-9a-fA-F]{${length}}`).join('-')}$`;

const canonical = new RegExp(UUID_PATTERN);

/** The one form in which we take a UUID from outside; other spellings that PostgreSQL accepts are refused. */
export function isUuid(text: string): boolean {
  return canonical.test(text);
}

/**
 * Makes UUIDs of version 7: time first, so new rows land at one end of their index, and strictly growing
 * within one maker, so rows of one batch sort in the order in which they were made.
 */
export function createUuidMaker(clock: Clock): () => string {
  const pool = Buffer.alloc(8 * 1024);
  let used = pool.length;
  let lastMs = 0;
  let counter = 0;

  return () => {
    const nowMs = clock.now().getTime();
    if (nowMs > lastMs) {
      lastMs = nowMs;
      counter = 0;
    } else if (++counter > 0xfff) {
      // More than 4096 in a millisecond, or the clock went back: run ahead of it rather than repeat.
      lastMs += 1;
      counter = 0;
    }
    if (used + 8 > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    pool[used] = ((pool[used] ?? 0) & 0x3f) | 0x80;
    const random = pool.toString('hex', used, used + 8);
    used += 8;
    const time = lastMs.toString(16).padStart(12, '0');
    const count = counter.toString(16).padStart(3, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${random.slice(0, 4)}-${random.slice(4)}`;
  };
}
