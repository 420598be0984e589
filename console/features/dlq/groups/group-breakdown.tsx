import { Link } from '@tanstack/react-router';
import { useText } from '../../../components/text/use-text.ts';
import { printFilter } from '../../../lib/filter/filter.ts';
import type { GroupDetails } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import styles from './groups.module.css';
import { StatusCounts } from './status-counts.tsx';
import { groupsTexts } from './texts/groups-texts.ts';

/** Where the group occurs, and for whom: topics, consumer groups and the most frequent keys. */
export function GroupBreakdown({ group }: Readonly<{ group: GroupDetails }>) {
  return (
    <div className={styles['breakdown']}>
      <ByTopic group={group} />
      <TopKeys group={group} />
    </div>
  );
}

function ByTopic({ group }: Readonly<{ group: GroupDetails }>) {
  const t = useText(groupsTexts);
  return (
    <section className={styles['panel']} aria-labelledby="by-topic">
      <h2 id="by-topic">{t.byTopic}</h2>
      <table className={styles['facts']}>
        <thead>
          <tr>
            <th scope="col">{t.topic}</th>
            <th scope="col">{t.consumerGroup}</th>
            <th scope="col">{t.messages}</th>
          </tr>
        </thead>
        <tbody>
          {group.by_topic.map(({ topic, consumer_group: consumer, counts }) => (
            <tr key={`${topic} ${consumer ?? ''}`}>
              <td>
                <Link
                  to="/dlq/messages"
                  search={{ q: termsOf({ fingerprint: group.fingerprint, topic, group: consumer }) }}
                >
                  {topic}
                </Link>
              </td>
              <td>{consumer ?? '–'}</td>
              <td>
                <StatusCounts counts={counts} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function TopKeys({ group }: Readonly<{ group: GroupDetails }>) {
  const t = useText(groupsTexts);
  const { top_keys: keys, fingerprint } = group;
  const looked = Math.min(10_000, group.count);
  return (
    <section className={styles['panel']} aria-labelledby="top-keys">
      <h2 id="top-keys">{t.topKeys}</h2>
      <p className={styles['hint']}>{t.topKeysHint}</p>
      <table className={styles['facts']}>
        <thead>
          <tr>
            <th scope="col">{t.key}</th>
            <th scope="col" data-number>
              {t.count}
            </th>
            <th scope="col">{t.share}</th>
          </tr>
        </thead>
        <tbody>
          {keys.map(({ key, key_base64: bytes, count }) => (
            <tr key={key ?? bytes ?? ''}>
              <td>
                {key === null ? (
                  <span className={styles['hint']}>{bytes === undefined ? t.noKey : `base64 ${bytes}`}</span>
                ) : (
                  <Link to="/dlq/messages" search={{ q: termsOf({ fingerprint, key }) }}>
                    <code>{key}</code>
                  </Link>
                )}
              </td>
              <td data-number>{formatCount(count)}</td>
              <td>
                <span
                  className={styles['share']}
                  aria-label={t.ofMessages(percent(count, looked))}
                  role="img"
                >
                  <span style={{ width: percent(count, looked) }} />
                </span>{' '}
                <span aria-hidden>{percent(count, looked)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function percent(part: number, whole: number): string {
  return `${whole === 0 ? 0 : Math.min(100, Math.round((part / whole) * 100))}%`;
}

function termsOf(values: Readonly<Record<string, string | null>>): string {
  return printFilter(
    Object.entries(values).flatMap(([qualifier, value]) =>
      value === null || value === '' ? [] : [{ qualifier, value, isExcluded: false }],
    ),
  );
}
