import { WholeIsProtected } from '../../../components/protection/whole-is-protected.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import { useHeaders, type Headers } from './use-headers.ts';
import type { RevealedProps } from './use-payload.ts';

/** All headers in their order, duplicates too. */
export function MessageHeaders({ message, revealed = null }: RevealedProps) {
  const { query, may } = useHeaders(message, revealed);
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

function HeaderTable({ headers }: Readonly<{ headers: Headers }>) {
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
