import { act, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { ApiFailure } from '../../lib/api/api-failure.ts';
import { cleanUpAfterEach, renderInPage } from '../testing/render-in-page.tsx';
import { EmptyState, FailedState, Skeleton } from './panel-states.tsx';

cleanUpAfterEach();

test('an error says what failed, its code and its request, and can be tried again', async () => {
  const onRetry = vi.fn<() => void>();
  const error = new ApiFailure('the server cannot be reached', {
    status: 503,
    code: 'SYS_UNAVAILABLE',
    requestId: 'req-7',
  });
  await renderInPage(<FailedState error={error} onRetry={onRetry} keepsData />);
  const alert = screen.getByRole('alert');
  for (const part of ['the server cannot be reached', 'SYS_UNAVAILABLE', 'req-7', 'still shown'])
    expect(alert.textContent).toContain(part);
  await userEvent.setup().click(screen.getByRole('button', { name: 'Retry' }));
  expect(onRetry).toHaveBeenCalledTimes(1);
});

test('a timeout suggests a shorter time range', async () => {
  const error = new ApiFailure('timed out after 30 s', { status: 0, code: 'TIMEOUT' });
  await renderInPage(<FailedState error={error} onRetry={() => {}} />);
  expect(screen.getByRole('alert').textContent).toContain('shorter time range');
});

test('rows are hinted at only when the answer takes a moment', async () => {
  vi.useFakeTimers();
  try {
    await renderInPage(<Skeleton rows={3} />);
    expect(screen.getByRole('status').children).toHaveLength(1);
    await act(async () => vi.advanceTimersByTime(200));
    expect(screen.getByRole('status').children).toHaveLength(4);
  } finally {
    vi.useRealTimers();
  }
});

test('an empty list is no alert', async () => {
  await renderInPage(<EmptyState title="Nothing failed">Last failure 3 h ago</EmptyState>);
  expect(screen.queryByRole('alert')).toBeNull();
  expect(screen.getByRole('heading', { name: 'Nothing failed' })).toBeTruthy();
});
