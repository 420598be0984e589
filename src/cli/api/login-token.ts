import { closeSync, mkdirSync, openSync, statSync, unlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { sleep } from '../../kernel/clock.ts';
import { codeOf } from '../../kernel/errors.ts';
import { ApiError } from '../../client-http/index.ts';
import { openIssuerClient } from './issuer-client.ts';
import type { StoredLogin, StoredLogins } from './stored-logins.ts';

/** A token that ends sooner is renewed first: the request with it takes a moment. */
const aheadMs = 30_000;
/** Longer than the issuer may take to renew the login. */
const lockWaitMs = 15_000;
/** Longer than any command waits for the lock. */
const lockStaleMs = 30_000;

/** The access token of the user's login at the server, renewed if necessary; undefined without a login. */
export async function tokenOfLogin(logins: StoredLogins, url: URL): Promise<string | undefined> {
  const login = logins.find(url);
  if (login === undefined || isFresh(login)) return login?.accessToken;
  return withLock(`${logins.file}.lock`, async () => {
    // Another command may have renewed it meanwhile; an issuer may accept each refresh token once.
    const current = logins.find(url);
    if (current === undefined || isFresh(current)) return current?.accessToken;
    const renewed =
      current.refreshToken === null ? undefined : await (await openIssuerClient(current)).renew(current);
    if (renewed === undefined)
      throw new ApiError(`the login at ${url.origin} has expired: run \`redrive login\``, {
        status: 401,
        code: 'SYS_CLI_LOGIN_EXPIRED',
      });
    logins.put(url, renewed);
    return renewed.accessToken;
  });
}

const isFresh = ({ expiresAtMs }: StoredLogin): boolean => expiresAtMs - aheadMs > Date.now();

/** One command at a time. A lock of a command that was killed is taken over. */
async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + lockWaitMs;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  while (!tryLock(file)) {
    if (performance.now() > untilMs)
      throw new ApiError(`another command is renewing the login; if none is running, delete ${file}`);
    await sleep(50);
  }
  try {
    return await work();
  } finally {
    unlinkSync(file);
  }
}

function tryLock(file: string): boolean {
  try {
    closeSync(openSync(file, 'wx', 0o600));
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  const since = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (since !== 0 && Date.now() - since > lockStaleMs) unlinkSync(file);
  return false;
}
