import { messageOf } from '../../kernel/errors.ts';
import { watchFiles } from '../secrets/watch-files.ts';
import { isRejectedLogin, type Login, type LoginSource } from './login.ts';

/**
 * The login of new connections. Its files are compared every 10 s, when something changes in their folders, and when a
 * connection is rejected. A new pair is tried with one connection before it is used: while the server rejects it, the
 * previous pair stays in use, because a half-written or mistyped secret must not end a working process.
 */
export type LoginRotation = Readonly<{
  current(): Login;
  /** Compares the files now. True if another login is in use afterwards. */
  refresh(): Promise<boolean>;
  /** Why the login that the files hold is not in use; null if it is. */
  trouble(): string | null;
  close(): void;
}>;

/** `refused`: the server rejects the new pair. `unreadable`: the file. `unreachable`: the server does not answer. */
export const reloadOutcomes = ['reloaded', 'refused', 'unreadable', 'unreachable'] as const;
export type ReloadOutcome = (typeof reloadOutcomes)[number];

export type LoginRotationOptions = Readonly<{
  source: LoginSource;
  /** Opens one connection with this login, and closes it. */
  probe: (login: Login) => Promise<void>;
  /** After every attempt to use what the files hold; before new connections use it. */
  onReload: (outcome: ReloadOutcome) => void;
  lookEveryMs?: number;
}>;

/** Requests that fail meanwhile do not try a refused pair again and again. */
const tryAgainAfterMs = 5000;

export function createLoginRotation(options: LoginRotationOptions): LoginRotation {
  const { source } = options;
  let current = source.initial;
  let failed: Readonly<{ login: Login; atMs: number }> | undefined;
  let trouble: string | null = null;
  let looking: Promise<boolean> | undefined;

  const hasJustFailed = (login: Login): boolean =>
    failed !== undefined && isSame(failed.login, login) && performance.now() - failed.atMs < tryAgainAfterMs;

  const fail = (outcome: Exclude<ReloadOutcome, 'reloaded'>, error: unknown): false => {
    trouble = `${reasons[outcome]} ${source.files.join(', ')}: ${messageOf(error)}; still using the previous login`;
    options.onReload(outcome);
    return false;
  };

  const look = async (): Promise<boolean> => {
    let found: Login;
    try {
      found = await source.read();
    } catch (error) {
      return fail('unreadable', error);
    }
    if (isSame(found, current)) {
      trouble = null;
      return false;
    }
    if (hasJustFailed(found)) return false;
    try {
      await options.probe(found);
    } catch (error) {
      failed = { login: found, atMs: performance.now() };
      return fail(isRejectedLogin(error) ? 'refused' : 'unreachable', error);
    }
    failed = undefined;
    trouble = null;
    current = found;
    options.onReload('reloaded');
    return true;
  };

  const refresh = (): Promise<boolean> =>
    (looking ??= look().finally(() => {
      looking = undefined;
    }));
  const isFixed = source.files.length === 0;
  const watched = isFixed ? null : watchFiles(source.files, () => void refresh(), options.lookEveryMs);
  return {
    current: () => current,
    refresh: () => (isFixed ? Promise.resolve(false) : refresh()),
    trouble: () => trouble,
    close: () => watched?.close(),
  };
}

const reasons = {
  refused: 'PostgreSQL refuses the login from',
  unreadable: 'cannot read',
  unreachable: 'cannot try the login from',
} as const;

function isSame(one: Login, other: Login): boolean {
  return one.user === other.user && one.password === other.password;
}
