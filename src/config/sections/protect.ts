import { Type } from 'typebox';

import { readFieldPath } from '../../kernel/protect/field-paths.ts';
import { compilePattern } from '../../kernel/protect/patterns.ts';
import { protectActions } from '../../kernel/protect/protect-rule.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import { callUrl } from '../formats/host-format.ts';
import { topicGlob } from '../formats/topic-format.ts';
import { filePath, flag, listOf, oneOf, optional, secret, section, text } from '../formats/value.ts';

/** Each is compared with the name of every item that is shown. */
const MAX_RULES = 100;
const MAX_FIELDS = 200;

const globs = (names: string) =>
  optional(
    listOf(
      text({
        what: 'a name in which * stands for any characters',
        pattern: '^[^\\s?]{1,249}$',
        isValid: (value) => !/\p{Cc}/u.test(value),
      }),
      { minItems: 1, maxItems: 100, description: `patterns of ${names}; \`*\` stands for any characters` },
    ),
  );

const rule = Type.Object({
  topics: globs('original or dead-letter topics, for dead letters'),
  queues: globs('queues, for jobs'),
  destinations: globs('destinations, for orders'),
  workflows: globs('workflows, for sagas'),
  fields: listOf(
    text({
      what: 'a path such as **.password, customer.email or /customer/email',
      pattern: '^.{1,500}$',
      isValid: (path) => readFieldPath(path) !== null,
    }),
    {
      default: [],
      maxItems: MAX_FIELDS,
      description:
        'paths in JSON, with dots or as JSON Pointer; `*` is any name or index, `**` any number of steps: `**.password`. Upper and lower case are the same',
    },
  ),
  headers: listOf(
    text({ what: 'the name of a header, in which * stands for any characters', pattern: '^[^?]{1,249}$' }),
    {
      default: [],
      maxItems: 100,
      description: 'names of headers; `*` stands for any characters, and upper and lower case are the same',
    },
  ),
  key: flag({
    default: false,
    description:
      'protect the keys of messages, dedupe keys of jobs, idempotency and ordering keys of orders, and correlation ids of sagas',
  }),
  patterns: listOf(text({ what: 'email, pan, bearer or one of protect.patterns', pattern: '.' }), {
    default: [],
    maxItems: 20,
    description:
      'what is looked for in all texts, errors included: `email`, `pan` (numbers of payment cards), `bearer` (tokens), or one of `protect.patterns`',
  }),
  action: oneOf(protectActions, {
    default: 'mask',
    description:
      '`mask`; `hash`: equal values look equal, requires `protect.hash_key`; `drop`: leave fields and headers out',
  }),
  drop_at_ingest: flag({
    default: false,
    description:
      'remove it from dead letters before they are stored, as `action` says. A message that lost parts of its key, value or headers can be retried only after an edit has given them again',
  }),
});

export const protect = section(
  {
    rules: listOf(rule, {
      default: [],
      maxItems: MAX_RULES,
      examples: [
        [
          {
            fields: ['**.password', '/customer/email'],
            headers: ['authorization'],
            patterns: ['pan', 'bearer'],
          },
          { topics: ['payments.*'], queues: ['payments-*'], key: true, action: 'hash' },
        ],
      ],
      description:
        'what is not shown of dead letters, jobs, orders and sagas. A rule with `topics`, `queues`, `destinations` or `workflows` is for what has one of these names, any other for everything. Log lines and the reasons in the audit log are covered by all rules',
    }),
    patterns: mapOf(
      chosenName('patterns'),
      text({
        what: 'an RE2 expression: no look-around and no back-references',
        pattern: '^[\\s\\S]{1,1000}$',
        isValid: isExpression,
      }),
      {
        default: {},
        examples: [{ iban: '[A-Z]{2}\\d{2}(?: ?[A-Z0-9]{4}){3,7}' }],
        description: 'patterns of your own, by name, as RE2 expressions',
      },
    ),
    hash_key: optional(
      secret({
        description: 'key of the hashes that `action: hash` shows; at least 16 characters',
      }),
    ),
    encrypt: section({
      topics: listOf(topicGlob(), {
        default: [],
        examples: [['payments.*']],
        description:
          'patterns of topics whose dead letters are stored encrypted: key, value, headers and stack trace. The original topic or the dead-letter topic must match. See [Encryption at rest](../design/protection-at-rest.md)',
      }),
      key_file: optional(
        filePath({
          examples: ['/run/secrets/redrive-master-keys'],
          description:
            'file with the master keys: one line `name:base64` for each key of 32 bytes. The first line encrypts data keys, all lines decrypt them. Keep it as long as there are encrypted messages, also when `topics` is empty',
        }),
      ),
      vault: section({
        address: optional(
          callUrl({
            examples: ['https://vault.example.com:8200'],
            description: 'URL of a Vault whose transit engine has the master key, in place of `key_file`',
          }),
        ),
        mount: text({
          what: 'the path of a mount',
          pattern: '^[\\w.-]+(/[\\w.-]+)*$',
          default: 'transit',
          description: 'where the transit engine is mounted',
        }),
        key: text({
          what: 'the name of a key',
          pattern: '^[\\w.-]+$',
          default: 'redrive',
          description:
            'name of the key in the transit engine; its type must be able to encrypt, as aes256-gcm96 is',
        }),
        token_file: optional(
          filePath({
            examples: ['/vault/secrets/token'],
            description:
              'file with a token that may encrypt, decrypt and rewrap with the key; read for every request, as an agent renews it',
          }),
        ),
        namespace: optional(
          text({
            what: 'a namespace',
            pattern: '^[\\w./-]+$',
            description: 'namespace, of Vault Enterprise',
          }),
        ),
      }),
    }),
  },
  { description: 'What is not shown: see [protection](../design/protection.md).' },
);

function isExpression(text: string): boolean {
  try {
    compilePattern(text);
    return true;
  } catch {
    return false;
  }
}
