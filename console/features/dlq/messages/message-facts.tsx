import { Link } from '@tanstack/react-router';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { keyText, missingParts, placeText } from './message-words.ts';
import { messagesTexts } from './texts/messages-texts.ts';
import type { RevealedMessage, RevealedProps } from './use-payload.ts';

/** Where it came from, and what is known of it. */
export function MessageFacts({ message, revealed = null }: RevealedProps) {
  const t = useText(messagesTexts);
  const key = keyText(revealed === null ? message : revealedKey(revealed));
  const { fingerprint } = message;
  const missing = missingParts(message, t);
  return (
    <Definitions
      items={[
        { term: t.stored, value: <Time at={message.created_at} /> },
        {
          term: t.original,
          value: message.unroutable
            ? t.unroutable
            : placeText({
                topic: message.original_topic,
                partition: message.original_partition,
                offset: message.original_offset,
              }),
        },
        {
          term: t.deadLetter,
          value: placeText({
            topic: message.source_topic,
            partition: message.source_partition,
            offset: message.source_offset,
          }),
        },
        { term: t.consumerGroup, value: message.consumer_group },
        {
          term: t.key,
          value:
            key === null ? (
              t.noKey
            ) : (
              <code>
                <MaskedText text={key} />
              </code>
            ),
        },
        { term: t.dialect, value: message.dialect },
        { term: t.attempts, value: t.attemptsOf(message.retry_count, message.max_retries) },
        { term: t.removed, value: missing.length === 0 ? null : t.removedAtIngest(missing) },
        { term: t.version, value: message.version === 0 ? null : t.edited(message.version) },
        {
          term: t.nextAttempt,
          value: message.next_attempt_at === null ? null : <Time at={message.next_attempt_at} />,
        },
        { term: t.policy, value: message.retry_policy },
        {
          term: t.group,
          value:
            fingerprint === null ? null : (
              <Link to="/dlq/groups/$fingerprint" params={{ fingerprint }}>
                {t.sameError}
              </Link>
            ),
        },
        {
          term: t.parent,
          value:
            message.parent_id === null ? null : (
              <Link to="/dlq/messages/$id" params={{ id: message.parent_id }}>
                {message.parent_id.slice(0, 8)}
              </Link>
            ),
        },
      ]}
    />
  );
}

function revealedKey({ key_text: text, key_base64: base64 }: RevealedMessage): Parameters<typeof keyText>[0] {
  return text === undefined && base64 !== null ? { key: null, key_base64: base64 } : { key: text ?? null };
}
