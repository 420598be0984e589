import type { ReactNode } from 'react';
import styles from './topics.module.css';

type FactColumn = Readonly<{ title: string; isNumber?: boolean }>;

type FactRow = Readonly<{ id: string; cells: readonly ReactNode[] }>;

/** A table to read, without a cursor. It scrolls by itself where it is wider than the page. */
export function FactsTable(
  props: Readonly<{ label: string; columns: readonly FactColumn[]; rows: readonly FactRow[] }>,
) {
  const { label, columns, rows } = props;
  return (
    // A region that scrolls can be reached by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles['scroll']} role="region" aria-label={label} tabIndex={0}>
      <table className={styles['table']}>
        <thead>
          <tr>
            {columns.map(({ title, isNumber = false }) => (
              <th key={title} scope="col" data-number={isNumber || undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, cells }) => (
            <tr key={id}>
              {cells.map((cell, i) => (
                <td key={columns[i]?.title} data-number={columns[i]?.isNumber === true || undefined}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
