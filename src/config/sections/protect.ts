import { topicGlob } from '../formats/topic-format.ts';
import { filePath, listOf, optional, section } from '../formats/value.ts';

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
  }),
});
