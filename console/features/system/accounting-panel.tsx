import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { Operations } from '../../lib/server-shapes.ts';
import { formatCount } from '../../lib/sizes.ts';
import { FactTable, SystemPanel } from './system-panel.tsx';
import styles from './system.module.css';
import { systemTexts } from './texts/system-texts.ts';

type Accounting = Operations['getAccounting']['answer'];

const everyMs = 30_000;

/** The proof that no record was dropped: what was passed is what was stored, folded, no record, or lost. */
export function AccountingPanel() {
  const t = useText(systemTexts);
  return (
    <SystemPanel<Accounting>
      title={t.accounting}
      path="/api/v1/dlq/accounting"
      permission="dlq:sources:view"
      everyMs={everyMs}
    >
      {({ balanced, partitions }) => {
        const wrong = partitions.filter((partition) => !partition.balanced);
        const lost = partitions.reduce((sum, partition) => sum + partition.lost, 0);
        if (partitions.length === 0) return <p>{t.nothingRead}</p>;
        return (
          <>
            <p className={styles['line']}>
              <StatusBadge
                status={balanced ? 'balanced' : 'mismatch'}
                role={balanced ? 'done' : 'attention'}
                isFilled
              />
              {balanced ? t.balanced : t.unbalanced(wrong.length)}
            </p>
            {lost === 0 ? null : <p className={styles['trouble']}>{t.lostRecords(lost)}</p>}
            {wrong.length === 0 ? <Sums partitions={partitions} /> : <Sums partitions={wrong} isEach />}
          </>
        );
      }}
    </SystemPanel>
  );
}

type Partition = Accounting['partitions'][number];

function Sums({
  partitions,
  isEach = false,
}: Readonly<{ partitions: readonly Partition[]; isEach?: boolean }>) {
  const t = useText(systemTexts);
  const fields = ['passed', 'stored', 'folded', 'not_records', 'lost'] as const;
  const whole = fields.map((field) => formatCount(partitions.reduce((sum, one) => sum + one[field], 0)));
  const rows = isEach
    ? partitions.map((one) => [
        `${one.topic} / ${one.partition}`,
        ...fields.map((field) => formatCount(one[field])),
      ])
    : [whole];
  return (
    <FactTable
      label={t.accounting}
      columns={[
        ...(isEach ? [{ title: t.partition }] : []),
        ...[t.passed, t.stored, t.folded, t.notRecords, t.lostOnes].map((title) => ({
          title,
          isNumber: true,
        })),
      ]}
      rows={rows}
    />
  );
}
