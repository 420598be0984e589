import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Message, Operations } from '../../../lib/server-shapes.ts';
import { placeText } from './message-words.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { messagePath } from './use-message.ts';

type History = Operations['getMessageHistory']['answer'];

/** Every transition, the newest first: who, why, and where it was published. */
export function MessageHistory({ message }: Readonly<{ message: Message }>) {
  const t = useText(messagesTexts);
  const api = useApi();
  const query = useQuery({
    queryKey: ['dlq', 'history', message.id, message.updated_at],
    queryFn: ({ signal }) => api.get<History>(`${messagePath(message.id)}/history`, signal),
    placeholderData: (last) => last,
  });
  return (
    <LoadedPanel
      loaded={loadedOf(query, () => null)}
      onRetry={() => void query.refetch()}
      renderEmpty={() => null}
    >
      {({ history, truncated }) => (
        <>
          <table className={styles['facts']}>
            <thead>
              <tr>
                <th scope="col">{t.when}</th>
                <th scope="col">{t.event}</th>
                <th scope="col">{t.actor}</th>
                <th scope="col">{t.becomes}</th>
                <th scope="col">{t.published}</th>
                <th scope="col">{t.why}</th>
              </tr>
            </thead>
            <tbody>
              {history.toReversed().map((entry, i) => (
                <tr key={i}>
                  <td>
                    <Time at={entry.at} />
                  </td>
                  <td>{entry.event}</td>
                  <td>{entry.actor}</td>
                  <td>{entry.status_to === null ? '–' : <StatusBadge status={entry.status_to} />}</td>
                  <td>{placeText(entry) ?? '–'}</td>
                  <td>
                    {entry.reason ?? entry.detail}
                    {entry.redrive_id === null ? null : (
                      <>
                        {' '}
                        <Link to="/dlq/redrives/$id" params={{ id: entry.redrive_id }}>
                          {t.redriveOf(entry.redrive_id.slice(0, 8))}
                        </Link>
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {truncated === true ? <p>{t.truncated}</p> : null}
        </>
      )}
    </LoadedPanel>
  );
}
