import type { Dimension } from '../access/scope.ts';

/** How a protected part is shown. `hash` lets equal values be recognized; `drop` leaves fields and headers out. */
export const protectActions = ['mask', 'hash', 'drop'] as const;
export type ProtectAction = (typeof protectActions)[number];

/** What must not be shown, of which items. */
export type ProtectRule = Readonly<{
  /** Patterns of names; a rule without any is for all items of all slices, else only for those that it names. */
  names: Readonly<Partial<Record<Dimension, readonly string[]>>>;
  /** Paths into JSON: `**.password`, `customer.email`, `/customer/email`. */
  fields: readonly string[];
  /** Patterns of the names of headers. */
  headers: readonly string[];
  /** Whether the key of a message is protected. */
  key: boolean;
  /** Names of patterns, which are looked for in all texts. */
  patterns: readonly string[];
  action: ProtectAction;
  /** Of dead letters, what it protects is not even stored. */
  dropAtIngest?: boolean;
}>;
