import { useSearch } from '@tanstack/react-router';
import { Page } from '../../../components/navigation/page.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import { useDestinations, type Destination } from '../use-destinations.ts';
import { DestinationRow } from './destination-row.tsx';
import styles from './destinations.module.css';
import { destinationsTexts } from './texts/destinations-texts.ts';

const everyMs = 5000;

/** Where orders go: whether it is up, how fast it takes them, and what waits for it. */
export function DestinationsPage() {
  const t = useText(destinationsTexts);
  const may = useMay('outbox:destinations:view');
  const query = useDestinations(everyMs);
  return (
    <Page title={t.title} facts={query.data === undefined ? undefined : <Time at={query.data.as_of} />}>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, ({ destinations }) => (destinations.length === 0 ? 'not_set_up' : null))}
          onRetry={() => void query.refetch()}
          renderEmpty={() => (
            <EmptyState title={t.noDestinations}>
              <p>{t.noDestinationsHint}</p>
            </EmptyState>
          )}
        >
          {({ destinations }) => <Table destinations={destinations} />}
        </LoadedPanel>
      ) : (
        <p>{may.reason}</p>
      )}
    </Page>
  );
}

function Table({ destinations }: Readonly<{ destinations: readonly Destination[] }>) {
  const t = useText(destinationsTexts);
  const { name: marked = '' } = useSearch({ strict: false });
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls on small screens.
    <div className={styles['scrolls']} tabIndex={0} role="region" aria-label={t.caption}>
      <table className={styles['table']}>
        <caption className="visually-hidden">{t.caption}</caption>
        <thead>
          <tr>
            <th scope="col">{t.name}</th>
            <th scope="col">{t.circuit}</th>
            <th scope="col">{t.throttle}</th>
            <th scope="col">{t.inFlight}</th>
            <th scope="col">{t.waiting}</th>
            <th scope="col">{t.lag}</th>
            <th scope="col">{t.dead}</th>
          </tr>
        </thead>
        <tbody>
          {destinations.map((destination) => (
            <DestinationRow
              key={destination.name}
              destination={destination}
              isMarked={destination.name === marked}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}
