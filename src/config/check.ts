import type { Problem } from './config-error.ts';
import type { AllGiven } from './layers/merge-layers.ts';
import { reasonAgainstLogin, type StoredLogin } from './layers/secret.ts';
import { reasonAgainstFile } from './layers/tls-files.ts';

/** For rules about several keys. */
export type Check = Readonly<{
  given: AllGiven;
  /** Reports the first path. Ignored if one of the keys already has a problem. */
  report(paths: readonly [string, ...string[]], reason: string): void;
  warn(message: string): void;
  /** Reports a missing file at start, not when it is needed. */
  checkFile(path: string, file: string | undefined): void;
  /** Reports a file that is named for both user and password and does not hold both. */
  checkLogin(path: string, login: Pick<StoredLogin, 'userFile' | 'passwordFile'>): void;
}>;

export function startCheck(given: AllGiven, problems: Problem[], warnings: string[]): Check {
  const isBroken = (path: string): boolean =>
    problems.some((problem) => problem.path === path || problem.path.startsWith(`${path}[`));
  const report: Check['report'] = (paths, reason) => {
    if (paths.some(isBroken)) return;
    const sources = paths.flatMap((path) => given.get(path)?.source ?? []);
    problems.push({ path: paths[0], reason, source: sources.length > 0 ? sources.join(', ') : undefined });
  };
  return {
    given,
    report,
    warn: (message) => void warnings.push(message),
    checkFile(path, file) {
      const reason = file === undefined ? undefined : reasonAgainstFile(file);
      if (reason !== undefined) report([path], reason);
    },
    checkLogin(path, login) {
      const reason = reasonAgainstLogin(login);
      if (reason !== undefined) report([path], reason);
    },
  };
}
