import type { Principal } from '../../kernel/access/principal.ts';
import type { Policy } from '../../kernel/access/roles.ts';
import type { AppError } from '../../kernel/errors.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Wake } from '../../platform/work/wake.ts';
import type { Worker } from '../../platform/work/work.ts';
import { noteUser } from '../known-users.ts';
import { createNotedTimes } from '../noted-times.ts';
import { createShortCache } from '../short-cache.ts';
import { findKey, keysChannel, noteMaker, noteUse, type Maker } from './keys-table.ts';
import { principalOfKey, verifyKey } from './verify-key.ts';

export type ApiKeys = Readonly<{
  verify(key: string): Promise<Principal>;
  /** What the key may do now, without its secret; null if it is unknown, revoked or expired. */
  principalOf(id: string): Promise<Principal | null>;
  /** The subject of the user who made the key; null if it is unknown. */
  makerOf(id: string): Promise<string | null>;
  /** Roles that a newer token no longer has are lost to the keys of its user, and to what the user has started. */
  noteMaker(maker: Maker): Promise<void>;
  /** After a revocation in this process; other processes are notified. */
  forget(): void;
  service: Service;
}>;

export type ApiKeysDeps = Readonly<{
  db: Database;
  wake: Wake;
  worker: Worker;
  policy: Policy;
  /** While migrations are missing there may be no table of keys. */
  schema: Readonly<{ outdated: () => AppError | null }>;
  log: Logger;
  /** A key was revoked, or its maker has lost rights. */
  onRevoked: () => void;
}>;

/** Only for the heartbeat of the loop: it waits for a notification. */
const waitMs = 30_000;
/** One write per key and minute, however many requests. */
const useNotedMs = 60_000;

export function createApiKeys(deps: ApiKeysDeps): ApiKeys {
  const { db, wake, worker, policy, schema, log, onRevoked } = deps;
  const cache = createShortCache((id) => findKey(db, id));
  const noted = createNotedTimes();
  const seen = createNotedTimes();

  const forget = (): void => {
    cache.clear();
    onRevoked();
  };

  const requireTable = (): void => {
    const missing = schema.outdated();
    if (missing !== null) throw missing;
  };

  /** Does not delay the request. */
  const onUse = (id: string): void => {
    const now = performance.now();
    if (!noted.isNewer(id, now, useNotedMs)) return;
    noted.set(id, now);
    noteUse(db, id).catch((error: unknown) =>
      log.warn({ err: error }, 'failed to note the use of an API key'),
    );
  };

  return {
    async verify(key) {
      requireTable();
      return verifyKey({ policy, findKey: cache.find, onUse }, key);
    },
    async principalOf(id) {
      const key = await cache.find(id);
      return key === null || key.isRevoked || key.isExpired ? null : principalOfKey(key, policy);
    },
    async makerOf(id) {
      const key = await cache.find(id);
      return key === null ? null : `user:${key.maker}`;
    },
    async noteMaker(maker) {
      if (!seen.isNewer(maker.id, maker.issuedAtMs, 0)) return;
      requireTable();
      await Promise.all([noteMaker(db, maker), noteUser(db, maker)]);
      seen.set(maker.id, maker.issuedAtMs);
      cache.clear();
    },
    forget,
    service: createLoop({
      name: 'access keys',
      everyMs: 0,
      async run(stopping) {
        if (await wake.wait(keysChannel, waitMs, stopping)) forget();
      },
      beat: () => worker.watch?.beat('access', 'keys'),
      onError: (error) => log.warn({ err: error }, 'failed to wait for revoked API keys'),
    }),
  };
}
