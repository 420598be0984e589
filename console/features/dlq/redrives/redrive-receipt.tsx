import { CopyButton } from '../../../components/button/copy-button.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

const ends = [
  'published',
  'applied',
  'came_back',
  'failed',
  'not_published',
  'unknown',
  'skipped',
  'cancelled',
] as const;

/** What happened, for good: the parts add up to what was selected. */
export function RedriveReceipt({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const { receipt } = redrive;
  if (receipt === null) return null;
  const { counts, sha256 } = receipt;
  const parts = ends.filter((end) => counts[end] > 0).map((end) => `${formatCount(counts[end])} ${t[end]}`);
  return (
    <section className={styles['panel']} aria-labelledby="receipt">
      <h2 id="receipt">{t.receipt}</h2>
      <p>
        <strong>{t.receiptAddsUp(parts.length === 0 ? '0' : parts.join(' + '), counts.selected)}</strong>
      </p>
      <p className={styles['hint']}>{t.receiptHint}</p>
      <p className={styles['sum']}>
        {t.sha256} <code>{sha256}</code> <CopyButton what={t.sha256} text={sha256} />
      </p>
    </section>
  );
}
