import { callUrl } from '../formats/host-format.ts';
import { topicGlob } from '../formats/topic-format.ts';
import { filePath, listOf, optional, section, text } from '../formats/value.ts';

export const protect = section({
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
        text({ what: 'a namespace', pattern: '^[\\w./-]+$', description: 'namespace, of Vault Enterprise' }),
      ),
    }),
  }),
});
