import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError } from '../kernel/errors.ts';
import { ApiError } from '../client-http/index.ts';

/** Those above 2 are from `sysexits.h`. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unavailable: 69, badConfig: 78 } as const;

/** As shown by `redrive --help` and docs/reference/cli.md. */
export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'success',
  failed: 'failed, refused, or a negative result (a check found a problem)',
  usage: 'wrong arguments or options',
  unavailable: 'server, database or Kafka unavailable; try again',
  badConfig: 'invalid configuration',
};

/** Wrong arguments or options. */
export class UsageError extends Error {
  /** Further lines: what is valid, and where to read about it. */
  readonly hints: readonly string[];
  /** The same for programs. */
  readonly details: ApiError['details'];

  constructor(message: string, more: Partial<Pick<UsageError, 'hints' | 'details'>> = {}) {
    super(message);
    this.name = 'UsageError';
    this.hints = more.hints ?? [];
    this.details = more.details ?? [];
  }
}

/** The command failed and has already printed why. */
export class SilentFailure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number = exitCodes.failed) {
    super();
    this.exitCode = exitCode;
  }
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof SilentFailure) return error.exitCode;
  if (error instanceof ConfigError) return exitCodes.badConfig;
  if (error instanceof ApiError) return exitCodeOfAnswer(error);
  if (error instanceof AppError && error.kind === 'unavailable') return exitCodes.unavailable;
  return exitCodes.failed;
}

/** Scripts retry after `unavailable`, so an action in doubt is a failure instead. */
function exitCodeOfAnswer({ status, isInDoubt }: ApiError): number {
  if (isInDoubt) return exitCodes.failed;
  if (status === 400) return exitCodes.usage;
  return status === undefined || (status >= 502 && status <= 504) ? exitCodes.unavailable : exitCodes.failed;
}
