import { randomBytes } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { DataKey } from '../../kernel/protect/envelope.ts';
import { KeyError, type Keyring, type KeyTrouble } from '../../kernel/protect/keyring.ts';
import type { Queryable } from '../postgres/database.ts';
import {
  insertLookupKey,
  insertMonthKey,
  selectKeyIds,
  selectKeys,
  selectLookupKey,
  selectNewest,
  type StoredKey,
} from './data-keys-table.ts';
import type { MasterKey } from './master-key.ts';

export type KeyringDeps = Readonly<{
  db: Queryable;
  slice: string;
  /** Null if none is configured: then nothing is encrypted, and what is cannot be read. */
  master: MasterKey | null;
  clock: Pick<Clock, 'monotonicMs'>;
}>;

/** What readiness reports. */
export type KeyringState = Readonly<{ keys: number; troubles: readonly string[] }>;

/** A new month, or a key that was made by `redrive keys rotate`, is noticed after this time. */
const currentForMs = 30_000;
/** A key that could not be unwrapped is tried again after this time. */
const troubleForMs = 5000;
const keyBytes = 32;

/**
 * The data keys of a slice: one per month, made by the first process that needs it. A key that was unwrapped stays in
 * memory, so that an outage of the master key is noticed only for keys that this process has not used yet. If the key
 * of a new month cannot be made, the key of the month before is still used.
 */
export function createKeyring(deps: KeyringDeps): Keyring & Readonly<{ state(): Promise<KeyringState> }> {
  const { db, slice, clock } = deps;
  const unwrapped = createUnwrapped(deps);
  let current: Readonly<{ data: DataKey; untilMs: number }> | null = null;
  let lookupKey: Buffer | null = null;

  const find: Keyring['find'] = async (ids) => {
    const found = new Map<number, DataKey | KeyTrouble>();
    const missing: number[] = [];
    for (const id of ids) {
      const secret = unwrapped.known(id);
      if (secret === undefined) missing.push(id);
      else found.set(id, { id, secret });
    }
    if (missing.length === 0) return found;
    const stored = new Map((await selectKeys(db, slice, missing)).map((key) => [key.id, key]));
    for (const id of missing) {
      const key = stored.get(id);
      if (key === undefined) found.set(id, { trouble: `data key ${id} is missing in platform.data_keys` });
      else found.set(id, await unwrapped.get(key).then((secret) => ({ id, secret }), troubleOf));
    }
    return found;
  };
  const lookup = async (): Promise<Buffer | null> => {
    if (lookupKey !== null) return lookupKey;
    const stored = await selectLookupKey(db, slice);
    if (stored === undefined) return null;
    lookupKey = await unwrapped.get(stored);
    return lookupKey;
  };
  return {
    find,
    lookup,
    isUsed: async () => lookupKey !== null || (await selectLookupKey(db, slice)) !== undefined,
    async current() {
      if (current === null || current.untilMs <= clock.monotonicMs())
        current = { data: await newestKey(deps, unwrapped), untilMs: clock.monotonicMs() + currentForMs };
      let found = await lookup();
      if (found === null) {
        await makeKey(deps, insertLookupKey);
        found = await lookup();
      }
      if (found === null) throw new KeyError('the lookup key is missing');
      return { data: current.data, lookup: found };
    },
    async state() {
      const ids = await selectKeyIds(db, slice);
      const keys = ids.length === 0 ? [] : [...(await find(new Set(ids))).values()];
      const troubles = keys.flatMap((key) => ('trouble' in key ? [key.trouble] : []));
      if (ids.length > 0) await lookup().catch((error: unknown) => troubles.push(troubleOf(error).trouble));
      return { keys: ids.length, troubles };
    },
  };
}

type Unwrapped = Readonly<{
  known(id: number): Buffer | undefined;
  /** Throws a KeyError. */
  get(key: StoredKey): Promise<Buffer>;
}>;

function createUnwrapped({ master, clock }: KeyringDeps): Unwrapped {
  const secrets = new Map<number, Buffer>();
  const troubles = new Map<number, Readonly<{ trouble: string; untilMs: number }>>();
  return {
    known: (id) => secrets.get(id),
    async get({ id, wrapped }) {
      const known = secrets.get(id);
      if (known !== undefined) return known;
      const recent = troubles.get(id);
      if (recent !== undefined && recent.untilMs > clock.monotonicMs()) throw new KeyError(recent.trouble);
      try {
        if (master === null) throw new KeyError('protect.encrypt names no master key');
        const secret = await master.unwrap(wrapped);
        if (secret.length !== keyBytes) throw new KeyError(`it does not have ${keyBytes} bytes`);
        secrets.set(id, secret);
        return secret;
      } catch (error) {
        if (!(error instanceof KeyError)) throw error;
        const trouble = `data key ${id} cannot be used: ${error.message}`;
        troubles.set(id, { trouble, untilMs: clock.monotonicMs() + troubleForMs });
        throw new KeyError(trouble, { cause: error });
      }
    },
  };
}

/** Another process may be faster: its key stays. */
async function makeKey({ db, slice, master }: KeyringDeps, insert: typeof insertMonthKey): Promise<void> {
  if (master === null) throw new KeyError('protect.encrypt names no master key');
  await insert(db, slice, await master.wrap(randomBytes(keyBytes)));
}

/** The newest key that can be used. */
async function newestKey(deps: KeyringDeps, unwrapped: Unwrapped): Promise<DataKey> {
  const { db, slice } = deps;
  let stored = await selectNewest(db, slice);
  let trouble: KeyError | null = null;
  if (stored[0]?.isOfThisMonth !== true) {
    try {
      await makeKey(deps, insertMonthKey);
      stored = await selectNewest(db, slice);
    } catch (error) {
      if (!(error instanceof KeyError)) throw error;
      trouble = error;
    }
  }
  for (const one of stored) {
    try {
      return { id: one.id, secret: await unwrapped.get(one) };
    } catch (error) {
      if (!(error instanceof KeyError)) throw error;
      trouble ??= error;
    }
  }
  throw trouble ?? new KeyError('there is no data key');
}

function troubleOf(error: unknown): KeyTrouble {
  if (error instanceof KeyError) return { trouble: error.message };
  throw error;
}
