import styles from './charts.module.css';

type Props = Readonly<{
  label: string;
  value: number;
  max: number;
  /** What is shown beside the bar, and read out in place of the number. */
  text: string;
}>;

/** How much of a limit is used, as a bar and in words. */
export function Gauge({ label, value, max, text }: Props) {
  const part = max <= 0 ? 0 : Math.min(1, Math.max(0, value / max));
  return (
    <span className={styles['gauge']}>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(value, max)}
        aria-valuetext={text}
        className={styles['bar']}
      >
        <span style={{ width: `${part * 100}%` }} />
      </span>
      <span aria-hidden>{text}</span>
    </span>
  );
}
