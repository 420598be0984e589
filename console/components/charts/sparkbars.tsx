import styles from './charts.module.css';

/** Bars of equal width, the newest at the right. `label` says in words what they show. */
export function Sparkbars({ values, label }: Readonly<{ values: readonly number[]; label: string }>) {
  const peak = Math.max(1, ...values);
  const height = 16;
  return (
    <svg
      role="img"
      aria-label={label}
      className={styles['bars']}
      viewBox={`0 0 ${values.length * 4} ${height}`}
      width={values.length * 4}
      height={height}
      preserveAspectRatio="none"
    >
      {values.map((value, i) => {
        const size = value === 0 ? 1 : Math.max(2, Math.round((value / peak) * height));
        return (
          <rect
            key={i}
            x={i * 4}
            y={height - size}
            width="3"
            height={size}
            data-empty={value === 0 || undefined}
          />
        );
      })}
    </svg>
  );
}
