import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printTerm } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { FoundItem, Message, Operations } from '../../../lib/server-shapes.ts';
import styles from './messages.module.css';
import { relatedTexts } from './related/related-texts.ts';
import { relatedOf, traceOf } from './related/related-of.ts';
import { useHeaders } from './use-headers.ts';
import type { RevealedProps } from './use-payload.ts';

type Found = Operations['findItems']['answer'];

/** What has the same key or trace, in all modules, and whether later messages of the key have failed as well. */
export function MessageRelated({ message, revealed = null }: RevealedProps) {
  const t = useText(relatedTexts);
  const { query, may, headers } = useHeaders(message, revealed);
  const trace = traceOf(headers);
  const byKey = useFound(message.key_base64 === undefined ? message.key : null);
  const byTrace = useFound(trace);
  return (
    <>
      <Panel title={t.sameKey} query={byKey} message={message} none={t.noKey}>
        {(found) => <NewerOfKey message={message} found={found} />}
      </Panel>
      <Panel
        title={t.sameTrace}
        query={byTrace}
        message={message}
        none={may.isAllowed ? (query.error === null ? t.noTrace : query.error.message) : t.traceHidden}
      >
        {() => (trace === null ? null : <code>{trace}</code>)}
      </Panel>
    </>
  );
}

function useFound(text: string | null) {
  const api = useApi();
  const query = useQuery({
    queryKey: ['find', text],
    queryFn: ({ signal }) => api.get<Found>(`/api/v1/find?q=${encodeURIComponent(text ?? '')}`, signal),
    enabled: text !== null && text !== '',
    staleTime: 0,
  });
  return { ...query, isAsked: text !== null && text !== '' };
}

type PanelProps = Readonly<{
  title: string;
  query: ReturnType<typeof useFound>;
  message: Message;
  none: string;
  children: (found: Found) => React.ReactNode;
}>;

function Panel({ title, query, message, none, children }: PanelProps) {
  const t = useText(relatedTexts);
  return (
    <section className={styles['related']} aria-label={title}>
      <h2>{title}</h2>
      {query.isAsked ? (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void query.refetch()}
          renderEmpty={() => null}
          skeletonRows={2}
        >
          {(found) => (
            <>
              {children(found)}
              {found.unavailable.length === 0 ? null : (
                <p role="alert">{t.unavailable(found.unavailable.join(', '))}</p>
              )}
              <Items items={relatedOf(found.items, message.id)} />
            </>
          )}
        </LoadedPanel>
      ) : (
        <p>{none}</p>
      )}
    </section>
  );
}

function NewerOfKey({ message, found }: Readonly<{ message: Message; found: Found }>) {
  const t = useText(relatedTexts);
  const newer = relatedOf(found.items, message.id).filter(
    ({ kind, title, at }) =>
      kind === 'message' && title === message.original_topic && at > message.created_at,
  );
  if (newer.length === 0) return <p>{t.noNewer}</p>;
  const q = printTerm({ qualifier: 'key', value: message.key ?? '', isExcluded: false });
  return (
    <p>
      {t.newer(newer.length)}{' '}
      <Link to="/dlq/messages" search={{ q }}>
        {t.showAll}
      </Link>
    </p>
  );
}

function Items({ items }: Readonly<{ items: readonly FoundItem[] }>) {
  const t = useText(relatedTexts);
  if (items.length === 0) return <p>{t.nothing}</p>;
  return (
    <table className={styles['facts']}>
      <thead>
        <tr>
          <th scope="col">{t.item}</th>
          <th scope="col">{t.status}</th>
          <th scope="col">{t.where}</th>
          <th scope="col">{t.when}</th>
        </tr>
      </thead>
      <tbody>
        {items.map(({ kind, id, link, status, title, at }) => (
          <tr key={`${kind} ${id}`}>
            <td>
              <Link to={link}>
                {t[kind]} <code>{id}</code>
              </Link>
            </td>
            <td>
              <StatusBadge status={status} />
            </td>
            <td>{title}</td>
            <td>
              <Time at={at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
