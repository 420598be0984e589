import { Link } from '@tanstack/react-router';
import { Gauge } from '../../../components/charts/gauge.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { roleOf } from '../../../lib/status/status-roles.ts';
import { printFilter } from '../../../lib/filter/filter.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { formatDuration } from '../../../lib/times.ts';
import type { Destination } from '../use-destinations.ts';
import { CircuitState } from './circuit.tsx';
import styles from './destinations.module.css';
import { destinationsTexts } from './texts/destinations-texts.ts';

type Props = Readonly<{ destination: Destination }>;

export function DestinationRow({ destination, isMarked }: Props & Readonly<{ isMarked: boolean }>) {
  return (
    <tr data-marked={isMarked || undefined}>
      <th scope="row">
        <Name destination={destination} />
      </th>
      <td>
        <CircuitState circuit={destination.circuit} />
      </td>
      <td>
        <Throttle destination={destination} />
      </td>
      <td>
        <InFlight destination={destination} />
      </td>
      <td>
        <Waiting destination={destination} />
      </td>
      <td>
        <Lag destination={destination} />
      </td>
      <td>
        <Dead destination={destination} />
      </td>
    </tr>
  );
}

function Name({ destination }: Props) {
  const t = useText(destinationsTexts);
  const { name, type, idempotency, internal, configured, asks_status: asksStatus } = destination;
  const keys =
    idempotency === null
      ? null
      : { none: t.keysUnknown, enforced: t.keysEnforced, consumer: t.keysByConsumer }[idempotency];
  const facts = [
    type,
    internal === true ? t.internal : null,
    keys,
    asksStatus === true ? t.asksStatus : null,
  ];
  return (
    <div className={styles['lines']}>
      <Link to="/outbox/orders" search={{ q: termOf('destination', name) }} aria-label={t.orders(name)}>
        {name}
      </Link>
      {configured ? null : <StatusBadge status={t.notConfigured} role={roleOf('cancelled')} />}
      <span className={styles['small']}>{facts.filter((fact) => fact !== null).join(' · ')}</span>
    </div>
  );
}

function Throttle({ destination: { throttle } }: Props) {
  const t = useText(destinationsTexts);
  if (throttle === null) return <span className={styles['small']}>{t.notThrottled}</span>;
  const { rate_per_second: rate, peak_per_second: peak, held_until: until } = throttle;
  return (
    <div className={styles['lines']}>
      {rate === null ? null : peak === null ? (
        t.rate(formatRate(rate))
      ) : (
        <Gauge
          label={t.throttle}
          value={rate}
          max={peak}
          text={t.rateOf(formatRate(rate), formatRate(peak))}
        />
      )}
      {until === null ? null : (
        <span className={styles['small']}>
          {t.heldUntil} <Time at={until} />
        </span>
      )}
    </div>
  );
}

function formatRate(rate: number): string {
  return rate >= 10 ? formatCount(Math.round(rate)) : rate.toFixed(1).replace(/\.0$/, '');
}

function InFlight({ destination }: Props) {
  const t = useText(destinationsTexts);
  const { here, all, limit_here: limit } = destination.in_flight;
  return (
    <div className={styles['lines']}>
      {limit === null ? null : (
        <Gauge label={t.inFlight} value={here} max={limit} text={t.slotsOf(here, limit)} />
      )}
      <span className={styles['small']}>{t.everywhere(all)}</span>
    </div>
  );
}

function Waiting({ destination: { name, waiting, waiting_is_lower_bound: isMore } }: Props) {
  const t = useText(destinationsTexts);
  const text = isMore === true ? t.atLeast(waiting) : formatCount(waiting);
  if (waiting === 0) return '0';
  return (
    <Link to="/outbox/orders" search={{ q: `${termOf('destination', name)} status:queued,failed` }}>
      {text}
    </Link>
  );
}

function Lag({ destination: { lag_seconds: lag, lag_p99_seconds: p99 } }: Props) {
  const t = useText(destinationsTexts);
  const [{ language }] = usePreferences();
  if (lag === null) return '–';
  return (
    <div className={styles['lines']}>
      {formatDuration(lag * 1000, language)}
      {p99 === null ? null : (
        <span className={styles['small']}>{t.p99(formatDuration(p99 * 1000, language))}</span>
      )}
    </div>
  );
}

function Dead({ destination }: Props) {
  const t = useText(destinationsTexts);
  const { name, needs_attention: dead, needs_attention_is_lower_bound: isMore } = destination;
  if (dead === 0) return '0';
  return (
    <Link
      to="/outbox/orders"
      search={{ q: `${termOf('destination', name)} is:unresolved` }}
      aria-label={`${t.deadOrders(name)}: ${dead}`}
    >
      <StatusBadge status={isMore === true ? t.atLeast(dead) : formatCount(dead)} role={roleOf('open')} />
    </Link>
  );
}

function termOf(qualifier: string, value: string): string {
  return printFilter([{ qualifier, value, isExcluded: false }]);
}
