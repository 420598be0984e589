import { type KeyboardEvent } from 'react';
import { nothingSelected, select, toggle, toggleShown } from '../../lib/selection/selection.ts';
import { usePreferences } from '../preferences/preferences.tsx';
import { isTyping, readListKey, type ListKey } from './list-keys.ts';
import type { ListTableProps } from './list-table.tsx';
import type { RowCursor } from './use-row-cursor.ts';

type Parts<Row> = Readonly<{ props: ListTableProps<Row>; ids: readonly string[]; cursor: RowCursor }>;

/** The keys of a list, which act only while focus is inside it. */
export function useListKeys<Row>(parts: Parts<Row>): (event: KeyboardEvent) => void {
  const [{ keys }] = usePreferences();
  return (event) => {
    if (event.defaultPrevented || isTyping(event.target)) return;
    const onControl = event.target instanceof HTMLButtonElement || event.target instanceof HTMLInputElement;
    if (event.key === ' ' && onControl) return;
    const key = readListKey(event, keys === 'on');
    const hasActed = key === null ? actOnRow(parts, event, keys === 'on') : act(parts, key);
    if (!hasActed) return;
    event.preventDefault();
    event.stopPropagation();
  };
}

function actOnRow<Row>(
  { props, ids, cursor }: Parts<Row>,
  event: KeyboardEvent,
  hasLetters: boolean,
): boolean {
  if (!hasLetters || event.ctrlKey || event.metaKey || event.altKey) return false;
  const { rowKeys = {} } = props;
  const doIt = Object.hasOwn(rowKeys, event.key) ? rowKeys[event.key] : undefined;
  const row = props.rows[ids.indexOf(cursor.current() ?? '')];
  if (doIt === undefined || row === undefined) return false;
  doIt(row);
  return true;
}

function act<Row>(parts: Parts<Row>, key: ListKey): boolean {
  const { props, ids, cursor } = parts;
  const at = ids.indexOf(cursor.current() ?? '');
  const id = ids[at];
  const { selection, peek } = props;
  switch (key.does) {
    case 'move':
      return move(parts, at, key);
    case 'first':
    case 'last':
      return moveTo(parts, ids.at(key.does === 'first' ? 0 : -1));
    case 'peek':
      if (peek === undefined || id === undefined) return false;
      peek.onChange(peek.id === id ? null : id);
      return true;
    case 'select':
      if (selection === undefined || id === undefined) return false;
      selection.onChange(toggle(selection.value, id));
      return true;
    case 'selectShown':
      selection?.onChange(toggleShown(selection.value, ids));
      return selection !== undefined;
    case 'selectMatching':
      if (selection?.matching === undefined) return false;
      selection.onChange(selection.matching.select());
      return true;
    case 'leave':
      return leave(props);
  }
}

function move<Row>(parts: Parts<Row>, at: number, key: Extract<ListKey, { does: 'move' }>): boolean {
  const { props, ids } = parts;
  const target = ids[at < 0 ? 0 : at + key.by];
  const from = ids[at];
  if (key.extends && props.selection !== undefined && target !== undefined) {
    const both = from === undefined ? [target] : [from, target];
    props.selection.onChange(select(props.selection.value, both));
  }
  return moveTo(parts, target);
}

/** At the ends the key does nothing, rather than to scroll the page. */
function moveTo<Row>({ cursor }: Parts<Row>, id: string | undefined): boolean {
  if (id !== undefined) cursor.moveTo(id);
  return true;
}

/** Closes the pane, then clears the selection, then leaves the list. */
function leave<Row>({ peek, selection, onLeave }: ListTableProps<Row>): boolean {
  if (peek !== undefined && peek.id !== null) peek.onChange(null);
  else if (selection !== undefined && selection.value.kind !== 'none') selection.onChange(nothingSelected);
  else if (onLeave !== undefined) onLeave();
  else if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
  return true;
}
