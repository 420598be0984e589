import type { Config } from '../config/config.ts';
import { openPayloads } from '../dlq/index.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { createMasterKey } from './create-master-key.ts';

/** For a command that reads messages: it decrypts with the keys of the configuration. */
export function payloadsFor(config: Config, db: Queryable) {
  const { payloads } = openPayloads({
    db,
    masterKey: createMasterKey(config.protect),
    encryptedTopics: config.protect.encrypt.topics,
    clock: systemClock,
  });
  return payloads;
}
