import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { beforeEach, expect, test, vi } from 'vitest';
import {
  countSelected,
  nothingSelected,
  selectAllMatching,
  type Selection,
} from '../../lib/selection/selection.ts';
import { cleanUpAfterEach, renderInPage } from '../testing/render-in-page.tsx';
import type { Column } from './column.ts';
import { ListTable } from './list-table.tsx';

cleanUpAfterEach();
beforeEach(() => {
  Element.prototype.scrollIntoView = () => {};
});

type Row = Readonly<{ id: string; name: string; count: number }>;

const columns: readonly Column<Row>[] = [
  { id: 'name', title: 'Name', isPrimary: true, render: (row) => row.name },
  { id: 'count', title: 'Count', render: (row) => row.count, textOf: (row) => String(row.count) },
];
const rowsOf = (...ids: readonly string[]): readonly Row[] =>
  ids.map((id) => ({ id, name: `row ${id}`, count: 1 }));

function List(props: Readonly<{ rows: readonly Row[]; total?: number; onRetry?: (row: Row) => void }>) {
  const [selection, setSelection] = useState<Selection>(nothingSelected);
  const [peek, setPeek] = useState<string | null>(null);
  const total = props.total ?? props.rows.length;
  return (
    <>
      <output data-testid="selected">{countSelected(selection, total)}</output>
      <output data-testid="peek">{peek}</output>
      <ListTable
        caption="Rows"
        rows={props.rows}
        idOf={(row) => row.id}
        nameOf={(row) => row.name}
        linkOf={(row) => ({ to: `/rows/${row.id}` })}
        columns={columns}
        selection={{
          value: selection,
          onChange: setSelection,
          matching: { total, select: () => selectAllMatching('', '2026-11-19T12:00:00Z') },
        }}
        peek={{ id: peek, onChange: setPeek }}
        rowKeys={props.onRetry === undefined ? {} : { r: props.onRetry }}
        initialCursor=""
        isGone={(row) => row.count < 0}
      />
    </>
  );
}

const focused = () => document.activeElement?.textContent;
const selected = () => screen.getByTestId('selected').textContent;

test('j and k move focus from link to link and stop at the ends', async () => {
  await renderInPage(<List rows={rowsOf('a', 'b', 'c')} />);
  const user = userEvent.setup();
  expect(focused()).toBe('row a');
  await user.keyboard('jjj');
  expect(focused()).toBe('row c');
  await user.keyboard('k{ArrowUp}{ArrowUp}');
  expect(focused()).toBe('row a');
  await user.keyboard('{End}');
  expect(focused()).toBe('row c');
});

test('Enter opens the row, Space previews it', async () => {
  const { history } = await renderInPage(<List rows={rowsOf('a', 'b')} />);
  const user = userEvent.setup();
  await user.keyboard('j ');
  expect(screen.getByTestId('peek').textContent).toBe('b');
  await user.keyboard('{Enter}');
  expect(history.location.pathname).toBe('/rows/b');
});

test('rows are selected by key, by checkbox and by extending', async () => {
  await renderInPage(<List rows={rowsOf('a', 'b', 'c')} />);
  const user = userEvent.setup();
  await user.keyboard('x');
  expect(selected()).toBe('1');
  await user.keyboard('J');
  expect(selected()).toBe('2');
  await user.click(screen.getByRole('checkbox', { name: 'Select row c' }));
  expect(selected()).toBe('3');
  expect(screen.getByRole<HTMLInputElement>('checkbox', { name: 'Select all rows shown' }).checked).toBe(
    true,
  );
});

test('all that match can be selected when all shown are, and Escape takes it back', async () => {
  await renderInPage(<List rows={rowsOf('a', 'b')} total={12_431} />);
  const user = userEvent.setup();
  await user.keyboard('a');
  expect(screen.getByText('All 2 shown are selected.')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: /Select all 12.431 that match/ }));
  expect(selected()).toBe('12431');
  screen.getByRole('link', { name: 'row a' }).focus();
  await user.keyboard('x');
  expect(selected()).toBe('12430');
  await user.keyboard('{Escape}');
  expect(selected()).toBe('0');
});

test('the cursor stays on its row when rows come, and takes the next place when it goes', async () => {
  const { redraw } = await renderInPage(<List rows={rowsOf('a', 'b', 'c')} />);
  const user = userEvent.setup();
  await user.keyboard('j');
  await redraw(<List rows={rowsOf('x', 'y', 'a', 'b', 'c')} />);
  expect(focused()).toBe('row b');
  await redraw(<List rows={rowsOf('x', 'y', 'a', 'c')} />);
  expect(focused()).toBe('row c');
});

test('keys of the screen get the row of the cursor, and letters elsewhere do nothing', async () => {
  const onRetry = vi.fn<(row: Row) => void>();
  await renderInPage(
    <>
      <input aria-label="elsewhere" />
      <List rows={rowsOf('a', 'b')} onRetry={onRetry} />
    </>,
  );
  const user = userEvent.setup();
  await user.keyboard('jr');
  expect(onRetry).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ id: 'b' }));
  await user.click(screen.getByRole('textbox', { name: 'elsewhere' }));
  await user.keyboard('rx');
  expect(onRetry).toHaveBeenCalledTimes(1);
  expect(selected()).toBe('0');
});

test('a cell that changed is marked, and a row that matches no more says so', async () => {
  const { redraw } = await renderInPage(<List rows={rowsOf('a', 'b')} />);
  await redraw(<List rows={[...rowsOf('a'), { id: 'b', name: 'row b', count: -2 }]} />);
  const row = screen.getByRole('row', { name: /row b/ });
  expect(within(row).getByRole('cell', { name: '-2' }).dataset['changed']).toBe('true');
  expect(row.textContent).toContain('no longer matches');
});
