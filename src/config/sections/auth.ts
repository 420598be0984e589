import { Type, type StaticDecode } from 'typebox';

import { isPermission } from '../../kernel/access/permissions.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import {
  duration,
  flag,
  listOf,
  oneOf,
  optional,
  secret,
  section,
  text,
  wholeNumber,
} from '../formats/value.ts';
import type { InCode } from '../in-code.ts';

const nameGlob = text({
  what: 'a name in which * stands for any characters',
  pattern: '^[^\\s?]{1,249}$',
  isValid: (value) => !/\p{Cc}/u.test(value),
});

const globs = (names: string) =>
  optional(
    listOf(nameGlob, { minItems: 1, description: `patterns of ${names}; \`*\` stands for any characters` }),
  );

const scope = {
  topics: globs('original topics'),
  queues: globs('queues'),
  destinations: globs('destinations'),
  workflows: globs('workflows'),
};

const permission = text({
  what: 'a permission such as dlq:messages:retry; docs/routes.md lists all',
  isValid: isPermission,
});

const role = Type.Object({
  extends: optional(text({ description: 'a built-in role or another one of these' })),
  permissions: listOf(permission, {
    default: [],
    description: 'permissions in addition, such as `dlq:messages:route`: see [routes](../routes.md)',
  }),
  ...scope,
});

const binding = Type.Object({
  role: text({ description: 'a built-in role or one of `auth.roles`' }),
  subjects: listOf(
    text({
      what: 'role:<role of the issuer>, user:<issuer>|<subject> or key:<id>',
      pattern: '^(role:.+|user:.+\\|.+|key:[a-z\\d]{8})$',
    }),
    {
      minItems: 1,
      description: 'who has the role: `role:<role of the issuer>`, `user:<issuer>|<subject>`, `key:<id>`',
    },
  ),
  ...scope,
});

export type RoleValues = InCode<StaticDecode<typeof role>>;
export type BindingValues = InCode<StaticDecode<typeof binding>>;

const issuer = (description: string) =>
  optional(
    text({
      what: 'an https:// URL without query and fragment (http:// on loopback)',
      pattern: '^https?://[^/\\\\?#]',
      isValid: (value) => URL.canParse(value) && !/[?#@]/.test(value),
      examples: ['https://idp.example.com/realms/main'],
      description,
    }),
  );

const claimPath = (fallback: string, example: string, description: string) =>
  text({
    what: 'a dotted path or a JSON Pointer',
    pattern: '.',
    default: fallback,
    examples: [example],
    description,
  });

const scopeName = text({ what: 'a name without spaces', pattern: '^[!-~]+$' });

const oidc = section(
  {
    issuer: issuer(
      'OpenID provider, exactly as in the claim `iss` of its ID tokens. Found by `<issuer>/.well-known/openid-configuration`',
    ),
    client_id: optional(
      text({
        pattern: '.',
        examples: ['redrive'],
        description:
          'client of the console at the provider. Its redirect URI is `<server.public_url>/auth/callback`; its post-logout redirect URI `<server.public_url>/`',
      }),
    ),
    client_secret: optional(
      secret({
        secretFile: 'oidc-client-secret',
        description:
          'secret of the client; none for a public client. One from a file is read again when the file changes',
      }),
    ),
    scopes: listOf(scopeName, {
      default: ['openid', 'profile'],
      description: 'scopes to ask for; `openid` is always among them',
    }),
    roles_claim: claimPath(
      'roles',
      'realm_access.roles',
      'claim with the roles, in the ID token or else in the answer of the userinfo endpoint; as `auth.jwt.roles_claim`',
    ),
    name_claim: claimPath(
      'preferred_username',
      'name',
      'claim with a name to show; never used to identify anybody',
    ),
  },
  { description: 'Logins of people in the console, by OpenID Connect. Requires `server.public_url`.' },
);

const session = section({
  idle: duration('5m', '24h', {
    default: '30m',
    description: 'a session without requests ends after this time',
  }),
  absolute: duration('5m', '168h', {
    default: '12h',
    description: 'a session ends after this time at the latest; roles are read at each login',
  }),
  keys: optional(
    secret({
      secretFile: 'session-keys',
      hasLines: true,
      description:
        'keys that seal what a login needs until it returns from the provider, separated by spaces or newlines, 32 characters or more each. The first one seals, all open: add a new key at the end, put it first when every replica has read it, and remove the old one after ten minutes. Read again when the file changes; required in production',
    }),
  ),
});

const cli = section(
  {
    client_id: optional(
      text({
        pattern: '.',
        examples: ['redrive-cli'],
        description: 'public client for `redrive login`, with the device flow, at the provider of `auth.jwt`',
      }),
    ),
    scopes: listOf(scopeName, {
      default: ['openid', 'offline_access'],
      description: 'scopes to ask for; with `offline_access` a login can be renewed without the user',
    }),
  },
  { description: 'Logins by `redrive login`. Requires `auth.jwt`.' },
);

export const auth = section(
  {
    mode: optional(
      oneOf(['none'], {
        description:
          '`none`: no authentication, also where others can reach the server; everybody may do everything',
      }),
    ),
    oidc,
    session,
    cli,
    jwt: section({
      issuer: issuer(
        'issuer of the tokens, exactly as in their claim `iss`. Its keys are found by `<issuer>/.well-known/openid-configuration`',
      ),
      audience: optional(
        text({
          what: 'text',
          pattern: '.',
          examples: ['redrive'],
          description: 'what the claim `aud` must contain; required',
        }),
      ),
      roles_claim: claimPath(
        'roles',
        'realm_access.roles',
        'claim with the roles, as a dotted path or JSON Pointer to a text or a list of texts; for `role:` in bindings',
      ),
      name_claim: claimPath(
        'preferred_username',
        'name',
        'claim with a name to show; never used to identify anybody',
      ),
      require_typ: optional(
        oneOf(['at+jwt'], {
          description: '`at+jwt`: refuse tokens without this type in their header (RFC 9068)',
        }),
      ),
    }),
    api_keys: section({
      enabled: flag({ default: false, description: 'keys for scripts and workers: `POST /api/v1/keys`' }),
      max_days: wholeNumber(1, 365, {
        default: 365,
        description: 'longest lifetime of a key in days; 90 unless the request says otherwise',
      }),
    }),
    roles: mapOf(chosenName('roles'), role, {
      default: {},
      examples: [
        { payments_operator: { extends: 'sys_operator', topics: ['payments.*'], queues: ['payments-*'] } },
      ],
      description:
        'roles of your own, by name. `topics`, `queues`, `destinations` and `workflows` narrow a role; a narrowed role covers only the kinds that it names',
    }),
    bindings: listOf(binding, {
      default: [],
      examples: [[{ role: 'payments_operator', subjects: ['role:payments-oncall'] }]],
      description:
        'who has which role. Without any, the roles `sys_auditor`, `sys_operator` and `sys_admin` of the issuer are those of Redrive',
    }),
  },
  {
    description:
      'Without `oidc` and `jwt` the server trusts everybody who reaches it, and listens on loopback only unless `mode` is `none`.',
  },
);
