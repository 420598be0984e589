import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { Time } from '../../components/time/time.tsx';
import type { SystemReplicas } from '../../lib/server-shapes.ts';
import { FactTable, SystemPanel } from './system-panel.tsx';
import styles from './system.module.css';
import { roleOf } from '../../lib/status/status-roles.ts';
import { systemTexts } from './texts/system-texts.ts';

const neededRoles = ['api', 'ingest', 'workers'];

export function ReplicasPanel() {
  const t = useText(systemTexts);
  return (
    <SystemPanel<SystemReplicas>
      title={t.replicas}
      path="/api/v1/system/replicas"
      permission="system:status:view"
      isWide
    >
      {({ replicas, leases }) => (
        <>
          <MissingRoles replicas={replicas} />
          <FactTable
            label={t.replicas}
            columns={[
              { title: t.replica },
              { title: t.status },
              { title: t.roles },
              { title: t.version },
              { title: t.started },
              { title: t.seen },
            ]}
            rows={replicas.map((replica) => [
              <code key="id">{replica.replica_id}</code>,
              <StatusBadge
                key="alive"
                status={replica.alive ? t.alive : t.lost}
                role={replica.alive ? 'done' : 'attention'}
              />,
              replica.roles.join(', '),
              replica.version,
              <Time key="started" at={replica.started_at} />,
              <Time key="seen" at={replica.seen_at} show="age" />,
            ])}
          />
          <h3>{t.leases}</h3>
          <p className={styles['hint']}>{t.leasesHint}</p>
          {leases.length === 0 ? (
            <p>{t.noLeases}</p>
          ) : (
            <FactTable
              label={t.leases}
              columns={[{ title: t.lease }, { title: t.holder }, { title: t.until }]}
              rows={leases.map(({ name, owner, until, held }) => [
                name,
                held ? (
                  <code key="owner">{owner}</code>
                ) : (
                  <StatusBadge key="owner" status={t.nobody} role={roleOf('unhealthy')} />
                ),
                held ? <Time key="until" at={until} /> : '–',
              ])}
            />
          )}
        </>
      )}
    </SystemPanel>
  );
}

/** A role that nobody has is work that nobody does. */
function MissingRoles({ replicas }: Pick<SystemReplicas, 'replicas'>) {
  const t = useText(systemTexts);
  const alive = new Set(replicas.filter((replica) => replica.alive).flatMap(({ roles }) => roles));
  return neededRoles
    .filter((role) => !alive.has(role))
    .map((role) => (
      <p key={role} role="alert" className={styles['trouble']}>
        {t.noRole(role)}
      </p>
    ));
}
