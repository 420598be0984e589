import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { MessageError } from './message-error.tsx';
import { MessageFacts } from './message-facts.tsx';
import { MessagePayload } from './message-payload.tsx';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { useMessage } from './use-message.ts';

/** The first screen of a message, beside its list. */
export function MessagePeek({ id }: Readonly<{ id: string }>) {
  const t = useText(messagesTexts);
  const { query } = useMessage(id);
  return (
    <div className={styles['peek']}>
      <LoadedPanel loaded={loadedOf(query, () => null)} onRetry={() => {}} renderEmpty={() => null}>
        {(message) => (
          <>
            <div className={styles['peekHead']}>
              <StatusBadge
                status={message.status}
                isFilled
                detail={`${message.retry_count}/${message.max_retries}`}
              />
              <LinkButton to={`/dlq/messages/${id}`}>{t.open}</LinkButton>
            </div>
            <MessageFacts message={message} />
            <MessageError message={message} />
            <MessagePayload message={message} />
          </>
        )}
      </LoadedPanel>
    </div>
  );
}
