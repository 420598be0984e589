import type { DataKey } from './envelope.ts';

/** Why a data key cannot be used now. */
export type KeyTrouble = Readonly<{ trouble: string }>;

/** The data keys of a slice, in the clear only in memory. */
export type Keyring = Readonly<{
  /** What new items are encrypted with, and the key of the hashes by which they are found. Throws a KeyError. */
  current(): Promise<Readonly<{ data: DataKey; lookup: Buffer }>>;
  /** Never throws for a key that cannot be unwrapped: the items of the other keys can still be read. */
  find(ids: ReadonlySet<number>): Promise<ReadonlyMap<number, DataKey | KeyTrouble>>;
  /** Null if nothing of the slice was ever encrypted. Throws a KeyError. */
  lookup(): Promise<Buffer | null>;
  /** Whether anything of the slice was ever encrypted. */
  isUsed(): Promise<boolean>;
}>;

/** A key is missing, wrong or out of reach. */
export class KeyError extends Error {}
