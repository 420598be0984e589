import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { createKeyring } from '../../platform/protect/keyring.ts';
import type { MasterKey } from '../../platform/protect/master-key.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { createPayloads, unreadableCodes, type Payloads, type UnreadableCode } from '../domain/payloads.ts';

export type ProtectionDeps = Readonly<{
  db: Queryable;
  /** Null if none is configured. */
  masterKey: MasterKey | null;
  /** Patterns of the topics whose messages are stored encrypted. */
  encryptedTopics: readonly string[];
  clock: Pick<Clock, 'monotonicMs'>;
  isJson: (bytes: Buffer) => boolean;
  /** A command has none. */
  metrics?: Metrics;
}>;

export type Protection = Readonly<{ payloads: Payloads; check: HealthCheck }>;

export function createProtection(deps: ProtectionDeps): Protection {
  const keyring = createKeyring({ db: deps.db, slice: 'dlq', master: deps.masterKey, clock: deps.clock });
  const isEncrypting = deps.encryptedTopics.length > 0;
  return {
    payloads: createPayloads({
      keyring,
      isProtectedTopic: compileGlobs(deps.encryptedTopics),
      isJson: deps.isJson,
      ...(deps.metrics === undefined ? {} : { onUnreadable: countUnreadable(deps.metrics) }),
    }),
    check: {
      name: 'dlq_encryption',
      critical: false,
      async check() {
        const { keys, troubles } = await keyring.state();
        const trouble = isEncrypting ? await keyring.current().then(() => null, messageOf) : null;
        const all = trouble === null ? [] : [`dead letters of encrypted topics wait: ${trouble}`];
        if (troubles.length > 0)
          all.push(`${troubles.length} of ${keys} data keys cannot be used: ${troubles[0]}`);
        return all.length === 0 ? { status: 'healthy' } : { status: 'degraded', message: all.join('; ') };
      },
    },
  };
}

function countUnreadable(metrics: Metrics): (code: UnreadableCode) => void {
  const unreadable = metrics.counter({
    name: 'dlq_unreadable_total',
    help: 'Encrypted messages that could not be decrypted when they were shown or sent.',
    labelNames: ['code'],
  });
  for (const code of unreadableCodes) unreadable.inc({ code }, 0);
  return (code) => unreadable.inc({ code });
}
