import { useContext, useSyncExternalStore } from 'react';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { Time } from '../../../components/time/time.tsx';
import { roleOf } from '../../../lib/status/status-roles.ts';
import type { Destination } from '../use-destinations.ts';
import styles from './destinations.module.css';
import { destinationsTexts } from './texts/destinations-texts.ts';

/** Open, and half-open as soon as a probe is due: then one order is sent to see whether the destination is back. */
export function CircuitState({ circuit }: Readonly<{ circuit: Destination['circuit'] }>) {
  const t = useText(destinationsTexts);
  const clock = useContext(ClockContext);
  const probeAt = circuit?.next_probe_at;
  const isDue = useSyncExternalStore(
    clock.subscribe,
    () => probeAt !== undefined && Date.parse(probeAt) <= clock.now(),
  );
  if (circuit === null) return '–';
  if (circuit.state === 'closed') return <StatusBadge status={t.closed} role={roleOf('closed')} />;
  return (
    <div className={styles['lines']}>
      <StatusBadge status={isDue ? t.halfOpen : t.open} role={roleOf(isDue ? 'half_open' : 'open')} />
      {circuit.reason === undefined ? null : (
        <span className={styles['small']}>
          <MaskedText text={circuit.reason} />
        </span>
      )}
      <span className={styles['small']}>
        {circuit.opened_at === undefined ? null : (
          <>
            {t.since} <Time at={circuit.opened_at} />
            {' · '}
          </>
        )}
        {isDue || probeAt === undefined ? (
          t.probing
        ) : (
          <>
            {t.nextProbe} <Time at={probeAt} show="age" />
          </>
        )}
      </span>
    </div>
  );
}
