import styles from './groups.module.css';

/** The first values, and how many more there are; all of them when one points at them. */
export function Chips({
  values,
  more,
}: Readonly<{ values: readonly string[]; more: (count: number) => string }>) {
  const [first, ...rest] = values;
  if (first === undefined) return <span aria-hidden>–</span>;
  return (
    <span className={styles['chips']} title={values.join('\n')}>
      <span className={styles['chip']}>{first}</span>
      {rest.length === 0 ? null : <span className={styles['moreChips']}>{more(rest.length)}</span>}
    </span>
  );
}
