import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { Time } from '../../components/time/time.tsx';
import type { SystemNotifiers } from '../../lib/server-shapes.ts';
import { formatCount } from '../../lib/sizes.ts';
import { FactTable, SystemPanel } from './system-panel.tsx';
import styles from './system.module.css';
import { roleOf } from '../../lib/status/status-roles.ts';
import { systemTexts } from './texts/system-texts.ts';

export function NotifiersPanel() {
  const t = useText(systemTexts);
  return (
    <SystemPanel<SystemNotifiers>
      title={t.notifiers}
      path="/api/v1/system/notifiers"
      permission="system:status:view"
    >
      {({ notifiers, oldest_event_at: oldest }) =>
        notifiers.length === 0 ? (
          <>
            <p>
              <StatusBadge status={t.noNotifiers} role={roleOf('degraded')} />
            </p>
            <p className={styles['hint']}>{t.noNotifiersHint}</p>
          </>
        ) : (
          <>
            {oldest === null ? null : (
              <p>
                {t.waitingEvents} <Time at={oldest} />
              </p>
            )}
            <FactTable
              label={t.notifiers}
              columns={[
                { title: t.name },
                { title: t.type },
                { title: t.status },
                { title: t.slices },
                { title: t.told },
                { title: t.held, isNumber: true },
              ]}
              rows={notifiers.map((notifier) => [
                notifier.name,
                notifier.type,
                <StatusBadge
                  key="status"
                  status={notifier.failed ? t.failed : t.works}
                  role={notifier.failed ? 'attention' : 'done'}
                />,
                notifier.slices.join(', '),
                <Time key="told" at={notifier.told_at} />,
                formatCount(notifier.held),
              ])}
            />
          </>
        )
      }
    </SystemPanel>
  );
}
