import { codeOf } from '../../kernel/errors.ts';

/** A user and its password, read together: a connection never mixes two pairs. */
export type Login = Readonly<{ user: string; password: string }>;

/** Where the login of a database comes from. */
export type LoginSource = Readonly<{
  /** As it was at the start. */
  initial: Login;
  /** The files that hold it. None: it never changes. */
  files: readonly string[];
  /** As the files hold it now; rejects if they cannot be read. */
  read(): Promise<Login>;
}>;

export function fixedLogin(user: string, password: string): LoginSource {
  const initial = { user, password };
  return { initial, files: [], read: () => Promise.resolve(initial) };
}

/** The server answered, and does not let this user in: wrong password, no such role, or no right to log in. */
export function isRejectedLogin(error: unknown): boolean {
  return ['28P01', '28000'].includes(codeOf(error) ?? '');
}
