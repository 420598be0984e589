import type { Act } from '../../kernel/audit/act.ts';
import type { AppError } from '../../kernel/errors.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Wake } from '../../platform/work/wake.ts';
import type { Worker } from '../../platform/work/work.ts';
import { createNotedTimes } from '../noted-times.ts';
import { createShortCache } from '../short-cache.ts';
import type { TokenClaims } from '../tokens/verify-token.ts';
import { makeReference, readReference } from './session-reference.ts';
import {
  endSession,
  findSession,
  insertSession,
  noteSessionUse,
  sessionsChannel,
  type SessionTimes,
} from './sessions-table.ts';

/** Logins of people in browsers. */
export type Sessions = Readonly<{
  /** The reference for the cookie. The session that the browser had before ends. */
  begin(claims: TokenClaims, before: string | undefined, act: Act): Promise<string>;
  /** What the provider said at the login; null if the session has ended. `isUse`: it shows that the user is there. */
  verify(reference: string, isUse: boolean): Promise<TokenClaims | null>;
  end(reference: string, act: Act): Promise<void>;
  /** After sessions were ended in this process; other processes are notified. */
  forget(): void;
  service: Service;
}>;

export type SessionsDeps = Readonly<{
  db: Database;
  wake: Wake;
  worker: Worker;
  /** While migrations are missing there may be no table of sessions. */
  schema: Readonly<{ outdated: () => AppError | null }>;
  log: Logger;
  times: SessionTimes;
  /** A session has ended before its time. */
  onEnded: () => void;
}>;

/** Only for the heartbeat of the loop: it waits for a notification. */
const waitMs = 30_000;
/** A little more than in the table, which takes one note a minute. */
const useNotedMs = 61_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { db, wake, worker, schema, log, times, onEnded } = deps;
  const cache = createShortCache((hex) => findSession(db, Buffer.from(hex, 'hex'), times));
  const noted = createNotedTimes();

  const forget = (): void => {
    cache.clear();
    onEnded();
  };

  /** Does not delay the request. */
  const noteUse = (sha256: Buffer, hex: string): void => {
    const now = performance.now();
    if (!noted.isNewer(hex, now, useNotedMs)) return;
    noted.set(hex, now);
    noteSessionUse(db, sha256, times).catch((error: unknown) =>
      log.warn({ err: error }, 'failed to note the use of a session'),
    );
  };

  return {
    async begin({ id, name, roles }, before, act) {
      const { text, sha256 } = makeReference();
      const replaced = before === undefined ? null : (readReference(before)?.sha256 ?? null);
      await insertSession(db, { sha256, replaced, subject: id, name, roles }, { times, act });
      forget();
      return text;
    },
    async verify(reference, isUse) {
      const given = readReference(reference);
      if (given === undefined) return null;
      const missing = schema.outdated();
      if (missing !== null) throw missing;
      const hex = given.sha256.toString('hex');
      const found = await cache.find(hex);
      if (found === null) return null;
      if (isUse) noteUse(given.sha256, hex);
      const { subject, name, roles, createdAt } = found;
      return { type: 'user', id: subject, name, roles, issuedAtMs: createdAt.getTime() };
    },
    async end(reference, act) {
      const given = readReference(reference);
      if (given !== undefined && (await endSession(db, given.sha256, act))) forget();
    },
    forget,
    service: createLoop({
      name: 'access sessions',
      everyMs: 0,
      async run(stopping) {
        if (await wake.wait(sessionsChannel, waitMs, stopping)) forget();
      },
      beat: () => worker.watch?.beat('access', 'sessions'),
      onError: (error) => log.warn({ err: error }, 'failed to wait for ended sessions'),
    }),
  };
}
