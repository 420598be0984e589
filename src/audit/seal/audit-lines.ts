import { createLogger, type LoggerOptions } from '../../platform/telemetry/logger.ts';
import type { CoverEvent } from '../cover-event.ts';
import type { SealedRound } from './seal-round.ts';

export type LineSettings = Readonly<{
  app: Readonly<{ name: string; version: string; environment: string }>;
  audit: Readonly<{ lines: boolean }>;
}>;

/**
 * The audit log as a stream: one line per event when it is sealed, in the order of their numbers, at least once. Each
 * line names the last block of its round, whose hash follows in the line about the block. It has a logger of its own, so
 * that no level silences it.
 */
export function createWriteLines(
  { app, audit }: LineSettings,
  cover: CoverEvent,
  stream?: LoggerOptions['stream'],
): (round: SealedRound) => void {
  if (!audit.lines) return () => {};
  const { name: service, version, environment } = app;
  const where = stream === undefined ? {} : { stream };
  const logger = createLogger({ service, version, environment, level: 'info', ...where });
  return ({ events, seals }) => {
    const block = seals.at(-1)?.block;
    for (const event of events) logger.info({ part: 'audit', block, event: cover(event) }, 'audit event');
  };
}
