import { Type, type StaticDecode } from 'typebox';

import { isPermission } from '../../kernel/access/permissions.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import { flag, listOf, oneOf, optional, section, text, wholeNumber } from '../formats/value.ts';
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

export const auth = section(
  {
    mode: optional(
      oneOf(['none'], {
        description:
          '`none`: no authentication, also where others can reach the server; everybody may do everything',
      }),
    ),
    jwt: section({
      issuer: optional(
        text({
          what: 'an https:// URL without query and fragment (http:// on loopback)',
          pattern: '^https?://[^/\\\\?#]',
          isValid: (value) => URL.canParse(value) && !/[?#@]/.test(value),
          examples: ['https://idp.example.com/realms/main'],
          description:
            'issuer of the tokens, exactly as in their claim `iss`. Its keys are found by `<issuer>/.well-known/openid-configuration`',
        }),
      ),
      audience: optional(
        text({
          what: 'text',
          pattern: '.',
          examples: ['redrive'],
          description: 'what the claim `aud` must contain; required',
        }),
      ),
      roles_claim: text({
        what: 'a dotted path or a JSON Pointer',
        pattern: '.',
        default: 'roles',
        examples: ['realm_access.roles'],
        description:
          'claim with the roles, as a dotted path or JSON Pointer to a text or a list of texts; for `role:` in bindings',
      }),
      name_claim: text({
        what: 'a dotted path or a JSON Pointer',
        pattern: '.',
        default: 'preferred_username',
        description: 'claim with a name to show; never used to identify anybody',
      }),
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
      'Without `jwt` the server trusts everybody who reaches it, and listens on loopback only unless `mode` is `none`.',
  },
);
