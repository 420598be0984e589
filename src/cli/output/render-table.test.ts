import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { displayWidth } from './display-width.ts';
import { renderTable, type Column } from './render-table.ts';

type Row = Readonly<{ id: string; count: number; error: string }>;

const columns: readonly Column<Row>[] = [
  { title: 'ID', text: ({ id }) => id },
  { title: 'COUNT', text: ({ count }) => String(count), align: 'right' },
  { title: 'ERROR', text: ({ error }) => error, minWidth: 10 },
];

test('columns are as wide as their widest cell', () => {
  assert.deepEqual(
    renderTable(columns, [
      { id: 'a', count: 1, error: 'x' },
      { id: 'long', count: 12_345_678, error: '' },
    ]),
    ['ID       COUNT  ERROR', 'a            1  x', 'long  12345678'],
  );
});

test('wide characters take their two columns', () => {
  const rows = ['注文', 'ab'].map((id) => ({ id, count: 1, error: 'e' }));
  assert.deepEqual(renderTable(columns, rows), ['ID    COUNT  ERROR', '注文      1  e', 'ab        1  e']);
});

test('without a terminal nothing is cut', () => {
  const error = 'e'.repeat(5000);
  assert.ok(renderTable(columns, [{ id: 'a', count: 1, error }])[1]?.endsWith(error));
});

test('a narrow terminal cuts only columns with a minimum width', () => {
  const id = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
  const [, line] = renderTable(columns, [{ id, count: 1, error: 'connection refused by the database' }], {
    width: 60,
  });
  assert.equal(line, `${id}      1  connection ref…`);
  const [, narrow] = renderTable(columns, [{ id, count: 1, error: 'connection refused' }], { width: 55 });
  assert.equal(narrow, `${id}      1  connectio…`);
});

test('a narrower terminal leaves out optional columns, the last one first', () => {
  const optional: readonly Column<Row>[] = [
    { title: 'ID', text: ({ id }) => id },
    { title: 'ONE', text: () => '1', isOptional: true },
    { title: 'TWO', text: () => '2', isOptional: true },
    { title: 'ERROR', text: ({ error }) => error, minWidth: 10 },
  ];
  const titlesAt = (width: number): string | undefined =>
    renderTable(optional, [{ id: 'abcd', count: 1, error: 'connection refused' }], { width })[0];
  assert.equal(titlesAt(26), 'ID    ONE  TWO  ERROR');
  assert.equal(titlesAt(25), 'ID    ONE  ERROR');
  assert.equal(titlesAt(20), 'ID    ERROR');
});

test('a terminal too narrow for a line shows blocks, and ids are never cut', () => {
  const id = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
  const row = { id, count: 1, error: 'connection refused by the database' };
  assert.deepEqual(renderTable(columns, [row, { ...row, error: 'x' }], { width: 40 }), [
    `ID     ${id}`,
    'COUNT  1',
    'ERROR  connection refused by the databa…',
    '',
    `ID     ${id}`,
    'COUNT  1',
    'ERROR  x',
  ]);
});

test('a cell cannot break out of its line', () => {
  const [, line] = renderTable(columns, [{ id: 'a', count: 1, error: 'x\n\u001b[2Jy' }]);
  assert.equal(line, 'a       1  x\\n\\u001b[2Jy');
});

test('colours do not disturb the columns', () => {
  const coloured = columns.map((column) => ({ ...column, tone: () => 'bad' as const }));
  const paint = (_tone: string, cell: string): string => `<${cell}>`;
  assert.deepEqual(renderTable(coloured, [{ id: 'a', count: 1, error: 'x' }], { paint }), [
    'ID  COUNT  ERROR',
    '<a >  <    1>  <x>',
  ]);
});

test('every line fits the terminal if the uncut columns do', () => {
  const row = fc.record({
    id: fc.string({ maxLength: 5 }),
    count: fc.nat(99_999),
    error: fc.string({ unit: 'grapheme', maxLength: 200 }),
  });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 5 }), fc.integer({ min: 60, max: 120 }), (rows, width) => {
      for (const line of renderTable(columns, rows, { width })) assert.ok(displayWidth(line) <= width);
    }),
  );
});

test('a block has room for some text on any terminal', () => {
  const lines = renderTable(columns, [{ id: 'a', count: 1, error: 'connection refused' }], { width: 3 });
  assert.deepEqual(lines, ['ID     a', 'COUNT  1', 'ERROR  connectio…']);
});
