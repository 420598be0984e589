import type { Config } from '../config/config.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import { createWake, type Wake } from '../platform/work/wake.ts';

export function openWake(
  { database }: Config,
  db: Database,
  { worker, canListen, logger }: Readonly<{ worker: string; canListen: boolean; logger: Logger }>,
): Wake {
  if (database.wake === 'listen' && !canListen)
    logger.warn(
      'polling for work: the database is behind a pooler in transaction mode; set database.direct_url to use notifications',
    );
  return createWake(db, {
    listen: database.wake === 'listen' && canListen,
    worker,
    onError: (error) => logger.warn({ err: error }, 'lost the LISTEN connection; polling until it is back'),
  });
}
