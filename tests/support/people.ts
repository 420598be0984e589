import type { Configuration } from 'oidc-provider';
import type { PeopleAtIssuer } from './issuer.ts';

/** Who logs in next at the provider, and what it says about this person. */
export type Person = { id: string; name: string; roles: readonly string[] };

export type PeopleOptions = Readonly<{
  /** Of the server that people log in to. */
  publicUrl: string;
  /** Whether roles and names are in the ID token; else only the userinfo endpoint has them. */
  areInIdToken?: boolean;
}>;

export const consoleClient = { id: 'redrive-console', secret: 'the-secret-of-the-console-client' } as const;
export const cliClient = 'redrive-cli';

/** People who log in without being asked anything: `person` is whoever sits in front of the browser. */
export function createPeople({
  publicUrl,
  areInIdToken = true,
}: PeopleOptions): PeopleAtIssuer & Readonly<{ person: Person; refuse: { next: boolean } }> {
  const person: Person = { id: 'ada', name: 'ada.l', roles: ['sys_operator'] };
  const refuse = { next: false };

  const configure = (base: Configuration): Configuration => ({
    ...base,
    clients: [...(base.clients ?? []), ...clientsFor(publicUrl)],
    extraTokenClaims: (context, token) =>
      token.kind === 'AccessToken' ? { roles: [...person.roles] } : base.extraTokenClaims?.(context, token),
    conformIdTokenClaims: !areInIdToken,
    claims: { openid: ['sub'], profile: ['preferred_username', 'roles'] },
    pkce: { required: () => true },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, preferred_username: person.name, roles: [...person.roles] }),
    }),
    // Everybody has agreed to everything.
    async loadExistingGrant({ oidc }) {
      const { client, session, provider } = oidc;
      const clientId = client?.clientId ?? '';
      const known = session?.grantIdFor(clientId);
      if (known !== undefined) return provider.Grant.find(known);
      const grant = new provider.Grant({ clientId, accountId: session?.accountId ?? '' });
      grant.addOIDCScope('openid profile offline_access');
      grant.addResourceScope('urn:redrive', '');
      await grant.save();
      return grant;
    },
    features: {
      ...base.features,
      deviceFlow: { enabled: true },
      revocation: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      resourceIndicators: {
        ...base.features?.resourceIndicators,
        enabled: true,
        // The console asks about people; others get tokens for the API.
        useGrantedResource: () => true,
        defaultResource: ({ oidc }) => (oidc.client?.clientId === consoleClient.id ? [] : 'urn:redrive'),
      },
    },
  });

  return {
    person,
    refuse,
    configure,
    async answerPage(provider, request, response) {
      if (request.url?.startsWith('/interaction/') !== true) return false;
      const { prompt } = await provider.interactionDetails(request, response);
      const result = refuse.next
        ? { error: 'access_denied', error_description: 'not today' }
        : prompt.name === 'consent'
          ? { consent: {} }
          : { login: { accountId: person.id } };
      await provider.interactionFinished(request, response, result);
      return true;
    },
  };
}

const clientsFor = (publicUrl: string): NonNullable<Configuration['clients']> => [
  {
    client_id: consoleClient.id,
    client_secret: consoleClient.secret,
    grant_types: ['authorization_code'],
    response_types: ['code'],
    redirect_uris: [`${publicUrl}/auth/callback`],
    post_logout_redirect_uris: [`${publicUrl}/`],
  },
  {
    client_id: cliClient,
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    response_types: [],
    redirect_uris: [],
  },
];
