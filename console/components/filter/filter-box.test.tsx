import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import type { Qualifiers } from '../../lib/filter/qualifiers.ts';
import { cleanUpAfterEach, renderInPage } from '../testing/render-in-page.tsx';
import { FilterBox } from './filter-box.tsx';
import { NoMatch } from './no-match.tsx';
import { StatusFacets } from './status-facets.tsx';

cleanUpAfterEach();

const qualifiers: Qualifiers = {
  qualifiers: [
    { name: 'status', kind: 'choice', parameter: 'status', choices: ['PENDING', 'DEAD'], facet: 'status' },
    { name: 'topic', kind: 'one', parameter: 'topic', facet: 'topic' },
  ],
  text: { parameter: 'text' },
};
const counts = { topic: [{ value: 'orders.v1', count: 12 }] };

function Box({ start = '', onApply }: Readonly<{ start?: string; onApply?: (filter: string) => void }>) {
  const [filter, setFilter] = useState(start);
  const apply = (next: string): void => {
    setFilter(next);
    onApply?.(next);
  };
  return (
    <>
      <FilterBox value={filter} onApply={apply} qualifiers={qualifiers} counts={counts} />
      <StatusFacets
        label="Status"
        qualifier="status"
        counts={[{ value: 'DEAD', count: 3 }]}
        isEstimate={false}
        filter={filter}
        onApply={apply}
      />
      <NoMatch filter={filter} onApply={apply} />
      <output>{filter}</output>
    </>
  );
}
const applied = () => document.querySelector('output')?.textContent;

test('values are completed, and Enter applies the filter', async () => {
  await renderInPage(<Box />);
  const user = userEvent.setup();
  await user.type(await screen.findByRole('combobox', { name: 'Filter' }), 'topic:ord');
  await user.click(await screen.findByRole('option', { name: /topic:orders.v1/ }));
  expect(screen.getByRole<HTMLInputElement>('combobox', { name: 'Filter' }).value).toBe('topic:orders.v1 ');
  await user.keyboard('timed{Enter}');
  expect(applied()).toBe('topic:orders.v1 timed');
});

test('what is wrong is said', async () => {
  await renderInPage(<Box start="tpic:x" />);
  expect(screen.getByRole('alert').textContent).toContain(
    'tpic:x: unknown qualifier. Use one of status, topic',
  );
});

test('terms are removed one by one', async () => {
  await renderInPage(<Box start={'status:DEAD "a b"'} />);
  const user = userEvent.setup();
  await user.click(screen.getAllByRole('button', { name: 'Remove status:DEAD' })[0] ?? document.body);
  expect(applied()).toBe('"a b"');
});

test('a status is chosen and taken back by its count', async () => {
  await renderInPage(<Box start="word" />);
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'DEAD 3' }));
  expect(applied()).toBe('word status:DEAD');
  await user.click(screen.getByRole('button', { name: 'DEAD 3', pressed: true }));
  expect(applied()).toBe('word');
});

test('the form offers the same filter', async () => {
  const onApply = vi.fn<(filter: string) => void>();
  await renderInPage(<Box start="-topic:x status:DEAD" onApply={onApply} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Filters' }));
  await user.click(await screen.findByRole('checkbox', { name: /PENDING/ }));
  await user.type(screen.getByRole('combobox', { name: 'topic' }), 'a b');
  await user.click(screen.getByRole('button', { name: 'Apply' }));
  expect(onApply).toHaveBeenCalledExactlyOnceWith('-topic:x status:DEAD,PENDING topic:"a b"');
});
