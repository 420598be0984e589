import type { Config } from '../config/config.ts';
import { createProtection } from '../kernel/protect/protection.ts';
import { createLogger, type Logger } from '../platform/telemetry/logger.ts';

/** Protected parts are covered in log lines too: errors of services quote what they failed on. */
export function loggerFor({ app, telemetry, protect }: Config): Logger {
  const masks = createProtection(protect).ofEverything();
  return createLogger({
    service: app.name,
    version: app.version,
    environment: app.environment,
    level: telemetry.logLevel,
    ...(masks.isEmpty ? {} : { cover: masks.json }),
  });
}
