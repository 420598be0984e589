import { createProtection } from '../../src/kernel/protect/protection.ts';
import { maskPayloadsBy, type MaskPayloads } from '../../src/platform/http/access/payload-masks.ts';

/** For routes without the rest of the system: no rules. */
export const noMasking: MaskPayloads = maskPayloadsBy(
  createProtection({ rules: [], patterns: {}, hashKey: null }),
);
