import { topicName } from '../formats/topic-format.ts';
import { flag, optional, section } from '../formats/value.ts';

export const audit = section({
  lines: flag({
    default: false,
    description:
      'also writes every event of the audit log to the log, as one line of JSON (`"part":"audit"`) that no log level silences. Lines are written when an event is sealed, up to about ten seconds later, and at least once',
  }),
  anchor_topic: optional(
    topicName({
      examples: ['redrive.audit.anchors.v1'],
      description:
        'topic that gets every block of the chain of the audit log, `{block, hash, …}`: a copy outside the database, with which `POST /api/v1/audit/verify` finds out that the newest blocks were removed. Without it, and without Kafka, blocks are only logged',
    }),
  ),
});
