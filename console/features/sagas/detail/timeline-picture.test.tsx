import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { cleanUpAfterEach, renderInPage } from '../../../components/testing/render-in-page.tsx';
import type { StepLog } from '../../../lib/server-shapes.ts';
import { orderedLog } from '../use-saga.ts';
import { TimelinePicture } from './timeline-picture.tsx';

cleanUpAfterEach();

const readAt = Date.parse('2026-01-31T12:00:10.000Z');

const row = (id: string, more: Partial<StepLog>): StepLog => ({
  id,
  saga_id: 's',
  step_index: 0,
  step_name: 'reserve',
  action: 'EXECUTE',
  status: 'SUCCESS',
  request_payload: null,
  response_payload: null,
  error_message: null,
  started_at: '2026-01-31T12:00:00.000Z',
  completed_at: '2026-01-31T12:00:00.120Z',
  updated_at: null,
  attempt: 1,
  answer: 'done',
  headers: {},
  fingerprint: null,
  ...more,
});

const steps = ['reserve', 'charge'].map((name) => ({
  name,
  state: 'not_started' as const,
  service: 'shop',
  method: `POST /${name}`,
  compensate: null,
  pivot: name === 'charge',
}));

async function draw(log: readonly StepLog[], selected: string | null = null, isPolled = false) {
  const chosen: string[] = [];
  await renderInPage(
    <TimelinePicture
      steps={steps}
      log={orderedLog(log, { next_attempt_at: isPolled ? '2026-01-31T12:01:00.000Z' : null })}
      readAt={readAt}
      selected={selected}
      onSelect={(id) => chosen.push(id)}
    />,
  );
  return chosen;
}

test('without attempts it shows the steps, and says that none was started', async () => {
  await draw([]);
  expect(screen.queryAllByRole('radio')).toHaveLength(0);
  expect(screen.getAllByRole('listitem').map(({ textContent }) => textContent)).toEqual([
    expect.stringContaining('1 reserve'),
    expect.stringContaining('pivot: after this only forward'),
  ]);
  expect(screen.getAllByText('not started')).toHaveLength(4);
});

test('a single attempt is a bar with its place, step, result and time', async () => {
  await draw([row('a', {})]);
  expect(screen.getByRole('radio', { name: '1: reserve, attempt 1, done, 120 ms' })).toBeTruthy();
});

test('an open attempt may have been called', async () => {
  await draw([row('a', { status: null, answer: null, completed_at: null })]);
  expect(screen.getByRole('radio', { name: '1: reserve, attempt 1, maybe called, …' })).toBeTruthy();
});

test('an open attempt that was accepted is polled, not in doubt', async () => {
  await draw([row('a', { status: null, answer: null, completed_at: null })], null, true);
  expect(screen.getByRole('radio', { name: /accepted, not done yet/ })).toBeTruthy();
});

test('bars are one stop of Tab, and arrows lead from one to the next', async () => {
  const log = [
    row('a', {}),
    row('b', { step_index: 1, step_name: 'charge', status: 'FAILED', answer: 'refused' }),
    row('c', { action: 'COMPENSATE', started_at: '2026-01-31T12:00:09.000Z' }),
  ];
  const chosen = await draw(log, 'b');
  const user = userEvent.setup();
  await user.tab();
  expect(document.activeElement?.getAttribute('aria-label')).toBe('2: charge, attempt 1, refused, 120 ms');
  await user.keyboard('{ArrowRight}{ArrowLeft}{Home}');
  expect(chosen).toEqual(['c', 'a', 'a']);
  expect(screen.getByRole('radio', { name: /^3: undo reserve, attempt 1, undone/ })).toBeTruthy();
  expect(screen.getByRole('radio', { checked: true }).getAttribute('aria-label')).toMatch(/^2: charge/);
});
