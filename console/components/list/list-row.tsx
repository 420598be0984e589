import { Link } from '@tanstack/react-router';
import { memo, useEffect, useRef, useState } from 'react';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import type { Column, RowLink } from './column.ts';
import type { Later } from './later.ts';
import styles from './list.module.css';

type Props<Row> = Readonly<{
  row: Row;
  id: string;
  columns: readonly Column<Row>[];
  nameOf: (row: Row) => string;
  linkOf: (row: Row) => RowLink;
  /** Null in lists without selection. */
  isChosen: boolean | null;
  onToggle: (id: string) => void;
  isPeeked: boolean;
  isGone: boolean;
  /** Runs it in a moment, together with others. */
  later: Later;
}>;

function OneRow<Row>(props: Props<Row>) {
  const { row, id, columns, isChosen, isPeeked, isGone } = props;
  const t = useText(kitTexts);
  const marked = useMarkedCells(row, columns, props.later);
  const link = props.linkOf(row);
  return (
    <tr
      data-row-id={id}
      className={styles['row']}
      data-selected={isChosen === true || undefined}
      data-peeked={isPeeked || undefined}
      data-gone={isGone || undefined}
    >
      {isChosen === null ? null : (
        <td className={styles['select']}>
          <input
            type="checkbox"
            aria-label={t.selectRow(props.nameOf(row))}
            checked={isChosen}
            onChange={() => props.onToggle(id)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td
          key={column.id}
          data-column={column.id}
          data-title={column.title}
          data-number={column.isNumber === true || undefined}
          data-primary={column.isPrimary === true || undefined}
          data-changed={marked.has(column.id) || undefined}
        >
          {column.isPrimary === true ? (
            <Link to={link.to} search={link.search ?? {}} className={styles['link']} data-row-link>
              {column.render(row)}
            </Link>
          ) : (
            column.render(row)
          )}
          {isGone && column.isPrimary === true ? (
            <span className="visually-hidden"> ({t.goneRow})</span>
          ) : null}
        </td>
      ))}
    </tr>
  );
}

/** A row is drawn again only if something of it has changed, so that lists of hundreds stay fast. */
export const ListRow = memo(
  OneRow,
  (before, after) =>
    before.row === after.row &&
    before.columns === after.columns &&
    before.isChosen === after.isChosen &&
    before.isPeeked === after.isPeeked &&
    before.isGone === after.isGone,
) as typeof OneRow;

/** Columns whose text has changed since the row was drawn last, for a moment. */
function useMarkedCells<Row>(row: Row, columns: readonly Column<Row>[], later: Later): ReadonlySet<string> {
  const texts = useRef<ReadonlyMap<string, string> | null>(null);
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const now = new Map(
      columns.flatMap(({ id, textOf }) => (textOf === undefined ? [] : [[id, textOf(row)]])),
    );
    const before = texts.current;
    texts.current = now;
    if (before === null) return;
    const changed = [...now].filter(([id, text]) => before.has(id) && before.get(id) !== text);
    if (changed.length === 0) return;
    const nowMarked = new Set(changed.map(([id]) => id));
    setMarked(nowMarked);
    // Unless it has changed again meanwhile.
    later(() => setMarked((shown) => (shown === nowMarked ? new Set() : shown)));
  }, [row, columns, later]);
  return marked;
}
