import { randomBytes } from 'node:crypto';
import type { Policy } from '../../kernel/access/roles.ts';
import { principalOf, type SessionCredentials } from '../authenticate.ts';
import type { IssuerKeys } from '../tokens/issuer-keys.ts';
import type { LoginParts } from './login-routes.ts';
import { createLoginStateSeal } from './login-state.ts';
import { createLogins } from './logins.ts';
import { createProvider, type ProviderOptions } from './provider.ts';
import { cookieNamesFor } from './session-cookies.ts';
import { createSessions, type SessionsDeps } from './sessions.ts';

export type LoginOptions = Omit<ProviderOptions, 'keys'> &
  Readonly<{ session: Readonly<{ idleMs: number; absoluteMs: number; keys: (() => string) | null }> }>;

export type LoginDeps = Omit<SessionsDeps, 'times'> &
  Readonly<{ policy: Policy; keys: Pick<IssuerKeys, 'keyFor'> }>;

/** What the routes of the login need, and what its sessions prove. */
export type Login = Readonly<{
  parts: LoginParts;
  credentials: Pick<SessionCredentials, 'cookieName' | 'verifySession'>;
}>;

export function createLogin(options: LoginOptions, deps: LoginDeps): Login {
  const { publicUrl, session } = options;
  const names = cookieNamesFor(publicUrl);
  const provider = createProvider({ ...options, keys: deps.keys });
  const sessions = createSessions({ ...deps, times: session });
  const seal = createLoginStateSeal(keysFrom(session.keys));
  return {
    parts: {
      logins: createLogins({ provider, seal, names }),
      sessions,
      provider,
      names,
      pathPrefix: new URL(publicUrl).pathname.replace(/\/+$/, ''),
      principalOf: (claims) => principalOf(claims, deps.policy),
    },
    credentials: { cookieName: names.session, verifySession: sessions.verify },
  };
}

/** Without configured keys each process has its own: a login must then end where it began. */
function keysFrom(text: (() => string) | null): () => readonly string[] {
  if (text !== null)
    return () =>
      text()
        .split(/\s+/)
        .filter((key) => key !== '');
  const own = [randomBytes(32).toString('base64url')];
  return () => own;
}
