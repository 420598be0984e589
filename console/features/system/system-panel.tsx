import { useQuery } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';
import { useApi } from '../../components/session/api-context.ts';
import { useMay } from '../../components/session/use-may.ts';
import { LoadedPanel } from '../../components/states/loaded-panel.tsx';
import { loadedOf } from '../../lib/loaded.ts';
import styles from './system.module.css';

type Props<T> = Readonly<{
  title: string;
  path: string;
  permission: string;
  isWide?: boolean;
  everyMs?: number;
  children: (data: T) => ReactNode;
}>;

const usuallyEveryMs = 5000;

/** One part of the system, which is read, and fails, on its own. */
export function SystemPanel<T>(props: Props<T>) {
  const { title, path, permission, isWide = false, everyMs = usuallyEveryMs, children } = props;
  const api = useApi();
  const may = useMay(permission);
  const id = useId();
  const query = useQuery({
    queryKey: ['system', path],
    queryFn: ({ signal }) => api.get<T & object>(path, signal),
    enabled: may.isAllowed,
    refetchInterval: everyMs,
  });
  return (
    <section className={styles['panel']} data-wide={isWide || undefined} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void query.refetch()}
          renderEmpty={() => null}
          skeletonRows={3}
        >
          {(data) => children(data)}
        </LoadedPanel>
      ) : (
        <p>{may.reason}</p>
      )}
    </section>
  );
}

type Column = Readonly<{ title: string; isNumber?: boolean }>;

/** Rows of facts; cells are given in the order of the columns. */
export function FactTable(
  props: Readonly<{ label: string; columns: readonly Column[]; rows: readonly (readonly ReactNode[])[] }>,
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
          {rows.map((cells, i) => (
            <tr key={i}>
              {cells.map((cell, j) => (
                <td key={j} data-number={columns[j]?.isNumber === true || undefined}>
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
