import { useQuery } from '@tanstack/react-query';
import { WholeIsProtected } from '../../../components/protection/whole-is-protected.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { messagePath } from './use-message.ts';
import { isProtected, type RevealedProps } from './use-payload.ts';

type Raw = Operations['getRawMessage']['answer'];
type Headers = Raw['headers'] | 'protected';

/** All headers in their order, duplicates too. */
export function MessageHeaders({ message, revealed = null }: RevealedProps) {
  const api = useApi();
  const may = useMay('dlq:payloads:view');
  const { id, version } = message;
  const query = useQuery({
    queryKey: ['dlq', 'headers', id, version],
    queryFn: async ({ signal }): Promise<Headers> => {
      try {
        return (await api.get<Raw>(`${messagePath(id)}/raw?version=${version}`, signal)).headers;
      } catch (error) {
        if (isProtected(error)) return 'protected';
        throw error;
      }
    },
    enabled: may.isAllowed && revealed === null,
    staleTime: Infinity,
  });
  if (!may.isAllowed) return <p>{may.reason}</p>;
  if (revealed !== null) return <HeaderTable headers={revealed.headers} />;
  return (
    <LoadedPanel
      loaded={loadedOf(query, () => null)}
      onRetry={() => void query.refetch()}
      renderEmpty={() => null}
    >
      {(headers) => (headers === 'protected' ? <WholeIsProtected /> : <HeaderTable headers={headers} />)}
    </LoadedPanel>
  );
}

function HeaderTable({ headers }: Readonly<{ headers: Raw['headers'] }>) {
  const t = useText(messagesTexts);
  if (headers.length === 0) return <p>{t.noHeaders}</p>;
  return (
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
  );
}
