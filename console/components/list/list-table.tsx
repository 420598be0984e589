import { useCallback, useEffect, useId, useMemo, useRef } from 'react';
import {
  countSelected,
  isSelected,
  shownState,
  toggle,
  toggleShown,
  type Selection,
} from '../../lib/selection/selection.ts';
import { useHold } from '../live/use-hold.ts';
import { usePageKeys } from '../navigation/use-page-keys.ts';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import type { Column, RowLink } from './column.ts';
import { ListFoot, type MoreRows } from './list-foot.tsx';
import { createLater } from './later.ts';
import { ListRow } from './list-row.tsx';
import styles from './list.module.css';
import { NewRowsPill } from './new-rows-pill.tsx';
import { SelectionBar } from './selection-bar.tsx';
import type { ListLive } from './use-live-rows.ts';
import { useListKeys } from './use-list-keys.ts';
import { useRowCursor } from './use-row-cursor.ts';

/** A cell that has changed is marked for so long. */
const markedMs = 1200;

export type ListTableProps<Row> = Readonly<{
  /** Names the table, for screen readers. */
  caption: string;
  rows: readonly Row[];
  idOf: (row: Row) => string;
  /** Names a row, for the label of its checkbox. */
  nameOf: (row: Row) => string;
  linkOf: (row: Row) => RowLink;
  columns: readonly Column<Row>[];
  /** Absent for lists without selection. */
  selection?: Readonly<{
    value: Selection;
    onChange: (selection: Selection) => void;
    /** How many match the filter; null if not known. Absent if not all that match can be selected. */
    matching?: Readonly<{ total: number | null; select: () => Selection }>;
    /** Buttons for what is selected. */
    actions?: React.ReactNode;
  }>;
  /** The row whose preview is open. */
  peek?: Readonly<{ id: string | null; onChange: (id: string | null) => void }>;
  /** Other keys of a row, such as `r`. */
  rowKeys?: Readonly<Record<string, (row: Row) => void>>;
  onLeave?: () => void;
  /** Rows that match no more; they stay, greyed, until the list is loaded again. */
  isGone?: (row: Row) => boolean;
  /** Of `usePagedRows`: keeps rows up to date, and counts new ones. */
  live?: ListLive<Row> | undefined;
  more?: MoreRows;
  isRefreshing?: boolean;
  /** Focuses this row, or the first if it is empty, when the list appears and nothing else has focus. */
  initialCursor?: string;
  onCursor?: (id: string) => void;
}>;

/**
 * Rows as a native table. The cursor is the focus of the browser on the link of a row, so that Enter, Ctrl+Enter and
 * screen readers work as for any link. It is kept by id: rows may come and go around it.
 */
export function ListTable<Row>(props: ListTableProps<Row>) {
  const { rows, idOf, columns, selection, peek, isRefreshing = false } = props;
  const t = useText(kitTexts);
  const keysId = useId();
  const box = useRef<HTMLDivElement>(null);
  const ids = rows.map(idOf);
  const later = useMemo(() => createLater(markedMs), []);
  const isGone = props.live?.isGone ?? props.isGone;
  useHold(isHeld(selection) ? 'selection' : null, countHeld(selection));
  const cursor = useRowCursor(box, ids, props);
  const onKeyDown = useListKeys({ props, ids, cursor });
  const latest = useRef(selection);
  useEffect(() => {
    latest.current = selection;
  });
  const onToggle = useCallback((id: string) => {
    const now = latest.current;
    now?.onChange(toggle(now.value, id));
  }, []);
  return (
    // The keys are those of the rows; the handler only collects them.
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      ref={box}
      className={styles['list']}
      onKeyDown={onKeyDown}
      onFocus={cursor.remember}
      onMouseOver={tellWhole}
      aria-busy={isRefreshing}
      data-list
    >
      {props.live === undefined ? null : <LiveFresh live={props.live} />}
      {selection === undefined ? null : <SelectionBar selection={selection} ids={ids} />}
      <table className={styles['table']} aria-describedby={keysId}>
        <caption className="visually-hidden">{props.caption}</caption>
        <colgroup>
          {selection === undefined ? null : <col className={styles['selectColumn']} />}
          {columns.map(({ id, width }) => (
            <col key={id} style={width === undefined ? undefined : { width }} />
          ))}
        </colgroup>
        <ListHead selection={selection} ids={ids} columns={columns} />
        <tbody>
          {rows.map((row) => (
            <ListRow
              key={idOf(row)}
              row={row}
              id={idOf(row)}
              columns={columns}
              nameOf={props.nameOf}
              linkOf={props.linkOf}
              isChosen={selection === undefined ? null : isSelected(selection.value, idOf(row))}
              onToggle={onToggle}
              isPeeked={peek?.id === idOf(row)}
              isGone={isGone?.(row) ?? false}
              later={later}
            />
          ))}
        </tbody>
      </table>
      <p id={keysId} hidden>
        {t.rowKeys}
      </p>
      {props.more === undefined ? null : <ListFoot more={props.more} shown={rows.length} />}
    </div>
  );
}

/** What does not fit into a cell is told when the pointer rests on it; the preview and the page of the row have it too. */
function tellWhole({ target }: React.MouseEvent): void {
  const cell = target instanceof Element ? target.closest('td') : null;
  if (cell === null || cell.querySelector('[title]') !== null) return;
  if (cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
  else cell.removeAttribute('title');
}

/** Lies above the table, so that its coming moves nothing. */
function LiveFresh({ live }: Readonly<{ live: ListLive<never> }>) {
  const { fresh, onLoad } = live;
  usePageKeys({ 'Shift+Period': fresh === 0 ? undefined : onLoad });
  return (
    <div className={styles['fresh']}>
      <NewRowsPill count={fresh} onLoad={onLoad} />
    </div>
  );
}

function isHeld(selection: ListTableProps<never>['selection']): boolean {
  return selection !== undefined && selection.value.kind !== 'none';
}

/** How many rows are selected; 0 if not known. */
function countHeld(selection: ListTableProps<never>['selection']): number {
  return selection === undefined
    ? 0
    : (countSelected(selection.value, selection.matching?.total ?? null) ?? 0);
}

function ListHead(
  props: Readonly<{
    selection: ListTableProps<never>['selection'];
    ids: readonly string[];
    columns: readonly Pick<Column<never>, 'id' | 'title' | 'isNumber'>[];
  }>,
) {
  const { selection, ids, columns } = props;
  const t = useText(kitTexts);
  return (
    <thead>
      <tr>
        {selection === undefined ? null : (
          <th scope="col" className={styles['select']}>
            <HeaderCheckbox selection={selection} ids={ids} label={t.selectShown} />
          </th>
        )}
        {columns.map(({ id, title, isNumber = false }) => (
          <th key={id} scope="col" title={title} data-number={isNumber || undefined}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function HeaderCheckbox(
  props: Readonly<{
    selection: NonNullable<ListTableProps<never>['selection']>;
    ids: readonly string[];
    label: string;
  }>,
) {
  const { selection, ids, label } = props;
  const state = shownState(selection.value, ids);
  return (
    <input
      type="checkbox"
      aria-label={label}
      checked={state === 'all'}
      ref={(box) => {
        if (box !== null) box.indeterminate = state === 'some';
      }}
      onChange={() => selection.onChange(toggleShown(selection.value, ids))}
    />
  );
}
