import { createHmac } from 'node:crypto';
import type { ProtectAction } from './protect-rule.ts';

/** What stands for a protected part. */
export const MASK = '[masked]';

/** With or without a hash, of 64 bits in letters: digits could look like a number that is protected. */
const maskToken = /\[masked(?::[a-p]{16})?\]/g;

/** What is shown of a protected text. A mask stays as it is, so that masking twice is masking once. */
export type Cover = (text: string, action: ProtectAction) => string;

/** Without a key there are no hashes: everything gets the same mask. */
export function createCover(key: (() => string) | null): Cover {
  return (text, action) => {
    if (action !== 'hash' || key === null) return MASK;
    if (isMask(text)) return text;
    const hash = createHmac('sha256', key()).update(text).digest('hex').slice(0, 16);
    const letters = hash.replaceAll(/./g, (digit) => String.fromCharCode(0x61 + Number.parseInt(digit, 16)));
    return `[masked:${letters}]`;
  };
}

function isMask(text: string): boolean {
  return /^\[masked(?::[a-p]{16})?\]$/.test(text);
}

export function countMasks(text: string): number {
  return text.match(maskToken)?.length ?? 0;
}

/** Applies the change to what stands between masks. */
export function betweenMasks(text: string, change: (part: string) => string): string {
  if (!text.includes('[masked')) return change(text);
  let shown = '';
  let from = 0;
  for (const { 0: token, index } of text.matchAll(maskToken)) {
    shown += change(text.slice(from, index)) + token;
    from = index + token.length;
  }
  return shown + change(text.slice(from));
}
