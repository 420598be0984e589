import { createProtection, type Masks } from '../../src/kernel/protect/protection.ts';

/** Without rules nothing is covered. */
export const noMasks: Masks = createProtection({ rules: [], patterns: {}, hashKey: null }).ofEverything();
