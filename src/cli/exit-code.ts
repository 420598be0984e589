import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError } from '../kernel/errors.ts';
import { ApiError } from './api/api-error.ts';

/** What scripts check. Beyond 2 they are those of `sysexits.h`. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unavailable: 69, badConfig: 78 } as const;

/** The command was not called as it must be. */
export class UsageError extends Error {}

/** The command has said all there is to say, and it did not go well. */
export class SilentFailure extends Error {}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof ConfigError) return exitCodes.badConfig;
  if (error instanceof ApiError) return exitCodeOfAnswer(error);
  if (error instanceof AppError && error.kind === 'unavailable') return exitCodes.unavailable;
  return exitCodes.failed;
}

/** `unavailable` invites a script to try again, so an action that may have been done is not that. */
function exitCodeOfAnswer({ status, isInDoubt }: ApiError): number {
  if (isInDoubt) return exitCodes.failed;
  if (status === 400) return exitCodes.usage;
  return status === undefined || (status >= 502 && status <= 504) ? exitCodes.unavailable : exitCodes.failed;
}
