import { randomBytes } from 'node:crypto';
import { AppError } from '../../kernel/errors.ts';
import type { TokenClaims } from '../tokens/verify-token.ts';
import { loginLifetimeS, type LoginState, type LoginStateSeal } from './login-state.ts';
import type { Provider } from './provider.ts';
import { maxLogins, type CookieNames } from './session-cookies.ts';

/** The cookies of a request by name. */
export type Cookies = Readonly<Record<string, string | undefined>>;

export type SetCookie = Readonly<{ name: string; value: string; maxAgeS: number }>;

/**
 * A login goes to the provider and comes back. What it needs then waits in the browser, sealed, in one of five cookies;
 * the number of the cookie is the first letter of `state`. So the server keeps nothing, and any replica can finish it.
 */
export type Logins = Readonly<{
  begin(cookies: Cookies, returnTo: string): Promise<Readonly<{ url: URL; cookie: SetCookie }>>;
  finish(
    cookies: Cookies,
    query: string,
  ): Promise<Readonly<{ claims: TokenClaims; returnTo: string; cookie: SetCookie }>>;
  /** Where the login that comes back with this query was to lead; null if this browser has no such login. */
  returnPath(cookies: Cookies, query: string): Promise<string | null>;
}>;

export type LoginsDeps = Readonly<{ provider: Provider; seal: LoginStateSeal; names: CookieNames }>;

export function createLogins({ provider, seal, names }: LoginsDeps): Logins {
  const stateIn = async (cookies: Cookies, slot: number): Promise<LoginState | undefined> => {
    const sealed = cookies[names.login(slot)];
    return sealed === undefined ? undefined : seal.open(sealed);
  };

  /** One that is free, else that of the oldest login. */
  const chooseSlot = async (cookies: Cookies): Promise<number> => {
    const slots = Array.from({ length: maxLogins }, (_, slot) => slot);
    const ages = await Promise.all(
      slots.map(async (slot) => ({ slot, beganAtMs: (await stateIn(cookies, slot))?.beganAtMs ?? 0 })),
    );
    return ages.reduce((oldest, one) => (one.beganAtMs < oldest.beganAtMs ? one : oldest)).slot;
  };

  const loginOf = async (cookies: Cookies, query: string) => {
    const state = new URLSearchParams(query).get('state') ?? '';
    const slot = /^[0-4]/.test(state) ? Number(state[0]) : -1;
    const login = await stateIn(cookies, slot);
    return { slot, login: login?.state === state ? login : undefined };
  };

  return {
    returnPath: async (cookies, query) => (await loginOf(cookies, query)).login?.returnTo ?? null,
    async begin(cookies, returnTo) {
      const slot = await chooseSlot(cookies);
      const state = `${slot}${randomBytes(32).toString('base64url')}`;
      const { url, nonce, verifier } = await provider.begin(state);
      const value = await seal.seal({ state, nonce, verifier, returnTo, beganAtMs: Date.now() });
      return { url, cookie: { name: names.login(slot), value, maxAgeS: loginLifetimeS } };
    },
    async finish(cookies, query) {
      const { login, slot } = await loginOf(cookies, query);
      if (login === undefined)
        throw new AppError(
          'SYS_AUTH_LOGIN_FAILED',
          'validation',
          'this browser has no such login in progress: it was finished before, or took more than ten minutes; log in again',
        );
      const claims = await provider.finish(query, login);
      return { claims, returnTo: login.returnTo, cookie: { name: names.login(slot), value: '', maxAgeS: 0 } };
    },
  };
}
