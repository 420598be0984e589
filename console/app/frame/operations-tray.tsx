import { Link } from '@tanstack/react-router';
import { ListChecks } from 'lucide-react';
import { useId, useRef } from 'react';
import { useLiveState } from '../../components/live/live-context.ts';
import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { FollowedRedrive } from '../../lib/live/live-events.ts';
import { shareDone } from '../../lib/live/redrive-share.ts';
import { formatCount } from '../../lib/sizes.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './operations-tray.module.css';

const shownInBar = 3;

/** Redrives that go on, on every page, like the downloads of a browser. Nothing is shown while there are none. */
export function OperationsTray() {
  const t = useText(appTexts);
  const id = useId();
  const tray = useRef<HTMLElement>(null);
  const all = useLiveState((state) => state.redrives);
  // A plan waits for a person, and not on every page.
  const redrives = all.filter(({ started_at: startedAt }) => startedAt !== null);
  const stopped = redrives.filter(({ state }) => state === 'stopped').length;
  if (redrives.length === 0) return null;
  return (
    <>
      <button
        type="button"
        className={styles['trigger']}
        popoverTarget={id}
        aria-label={`${t.operationsOf(redrives.length)}${stopped === 0 ? '' : `. ${t.stoppedOf(stopped)}`}`}
        data-stopped={stopped > 0 || undefined}
      >
        <ListChecks size={16} aria-hidden />
        <span className={styles['meters']} aria-hidden>
          {redrives.slice(-shownInBar).map((redrive) => (
            <Meter key={redrive.id} redrive={redrive} />
          ))}
        </span>
        {stopped === 0 ? null : (
          <span className={styles['mark']} aria-hidden>
            ⬣
          </span>
        )}
      </button>
      <section ref={tray} id={id} popover="auto" aria-label={t.operations} className={styles['tray']}>
        <ul className={styles['list']}>
          {redrives.toReversed().map((redrive) => (
            <li key={redrive.id}>
              <Link
                to={`/dlq/redrives/${redrive.id}`}
                className={styles['operation']}
                onClick={() => tray.current?.hidePopover()}
              >
                <span className={styles['reason']}>{redrive.reason}</span>
                <StatusBadge status={redrive.state} />
                <Meter redrive={redrive} />
                <span className={styles['figures']}>
                  {t.doneOf(formatCount(shareDone(redrive).done), formatCount(redrive.counts.selected))}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function Meter({ redrive }: Readonly<{ redrive: FollowedRedrive }>) {
  const { quiet, failed } = shareDone(redrive);
  return (
    <span className={styles['meter']} data-state={redrive.state}>
      <span data-part="done" style={{ width: `${quiet * 100}%` }} />
      <span data-part="failed" style={{ width: `${failed * 100}%` }} />
    </span>
  );
}
