import { useQuery } from '@tanstack/react-query';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Message, Operations } from '../../../lib/server-shapes.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { messagePath } from './use-message.ts';

type Raw = Operations['getRawMessage']['answer'];

/** All headers in their order, duplicates too. */
export function MessageHeaders({ message }: Readonly<{ message: Message }>) {
  const t = useText(messagesTexts);
  const api = useApi();
  const may = useMay('dlq:payloads:view');
  const { id, version } = message;
  const query = useQuery({
    queryKey: ['dlq', 'raw', id, version],
    queryFn: ({ signal }) => api.get<Raw>(`${messagePath(id)}/raw?version=${version}`, signal),
    enabled: may.isAllowed,
    staleTime: Infinity,
  });
  if (!may.isAllowed) return <p>{may.reason}</p>;
  return (
    <LoadedPanel
      loaded={loadedOf(query, () => null)}
      onRetry={() => void query.refetch()}
      renderEmpty={() => null}
    >
      {({ headers }) =>
        headers.length === 0 ? (
          <p>{t.noHeaders}</p>
        ) : (
          <table className={styles['facts']}>
            <thead>
              <tr>
                <th scope="col">{t.name}</th>
                <th scope="col">{t.value}</th>
              </tr>
            </thead>
            <tbody>
              {headers.map((header, i) => (
                <tr key={i}>
                  <td>
                    <code>{header.key ?? `base64 ${header.key_base64 ?? ''}`}</code>
                  </td>
                  <td>
                    <code>
                      {header.value ??
                        (header.value_base64 === undefined ? t.noValue : `base64 ${header.value_base64}`)}
                    </code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )
      }
    </LoadedPanel>
  );
}
