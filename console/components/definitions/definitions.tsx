import type { ReactNode } from 'react';
import styles from './definitions.module.css';

export type Definition = Readonly<{ term: string; value: ReactNode }>;

/** Facts with their names. Those without a value are left out. */
export function Definitions({ items }: Readonly<{ items: readonly Definition[] }>) {
  return (
    <dl className={styles['definitions']}>
      {items
        .filter(({ value }) => value !== null && value !== undefined && value !== '')
        .map(({ term, value }) => (
          <div key={term} className={styles['pair']}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
