import { accessSync, constants } from 'node:fs';

import { codeOf } from '../kernel/errors.ts';
import type { Problem } from './config-error.ts';
import type { AllGiven } from './setting.ts';

/** What the rules that look at several keys at once work with. */
export type Check = Readonly<{
  given: AllGiven;
  /** The first path is the one to blame. Nothing is said about keys that have a problem of their own already. */
  report(paths: readonly [string, ...string[]], reason: string): void;
  warn(message: string): void;
  /** A file that will be needed later is missed now. */
  checkFile(path: string, file: string | undefined): void;
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
      if (file === undefined) return;
      try {
        accessSync(file, constants.R_OK);
      } catch (error) {
        report([path], `the file cannot be read: ${codeOf(error) ?? 'unknown error'}`);
      }
    },
  };
}
