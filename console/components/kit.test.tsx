import { act, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { roleOf, statusesWithRoles } from '../lib/status/status-roles.ts';
import { Button } from './button/button.tsx';
import { CopyButton } from './button/copy-button.tsx';
import { Sparkbars } from './charts/sparkbars.tsx';
import { StackedMeter } from './charts/stacked-meter.tsx';
import { Definitions } from './definitions/definitions.tsx';
import { NewRowsPill } from './list/new-rows-pill.tsx';
import { PeekLayout } from './peek/peek-layout.tsx';
import { StatusBadge } from './status/status-badge.tsx';
import { TabLinks } from './tabs/tab-links.tsx';
import { cleanUpAfterEach, renderInPage } from './testing/render-in-page.tsx';
import { Time } from './time/time.tsx';
import { ToastsProvider, useToast } from './toast/toasts.tsx';

cleanUpAfterEach();

test('a button that cannot be used says why and does nothing', async () => {
  const onPress = vi.fn<() => void>();
  await renderInPage(
    <Button onPress={onPress} keys="r" disabledReason="It is being retried">
      Retry
    </Button>,
  );
  const button = screen.getByRole('button', { name: 'Retry', description: 'It is being retried' });
  await userEvent.setup().click(button);
  expect(onPress).not.toHaveBeenCalled();
  expect(button.getAttribute('aria-keyshortcuts')).toBe('r');
});

test('text is copied without the clipboard of secure contexts', async () => {
  const copied: string[] = [];
  const user = userEvent.setup();
  vi.spyOn(navigator, 'clipboard', 'get').mockImplementation(() => {
    throw new Error('there is no clipboard on plain HTTP');
  });
  document.execCommand = () => {
    copied.push((document.activeElement as HTMLTextAreaElement).value);
    return true;
  };
  try {
    await renderInPage(<CopyButton what="id" text={() => 'a\nb'} />);
    await user.click(screen.getByRole('button', { name: 'Copy id' }));
    expect(copied).toEqual(['a\nb']);
    expect(screen.getByText('Copied')).toBeTruthy();
    expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Copy id' }));
  } finally {
    vi.restoreAllMocks();
  }
});

test('a time shows its age and the clock', async () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-19T12:00:00Z') });
  try {
    await renderInPage(<Time at="2026-11-19T11:48:00Z" />);
    const time = document.querySelector('time');
    expect(time?.textContent).toMatch(/^12 m · /);
    await act(async () => vi.advanceTimersByTime(60_000));
    expect(time?.textContent).toMatch(/^13 m · /);
    expect(Date.parse(time?.title ?? '')).toBe(Date.parse('2026-11-19T11:48:00Z'));
  } finally {
    vi.useRealTimers();
  }
});

test('every status has a word, and unknown ones are shown without a meaning', async () => {
  await renderInPage(statusesWithRoles.map((status) => <StatusBadge key={status} status={status} />));
  for (const status of statusesWithRoles) expect(screen.getAllByText(status)).not.toHaveLength(0);
  expect(roleOf('toString')).toBe('queued');
  expect(roleOf('failed')).not.toBe(roleOf('FAILED'));
});

test('a chart says in words what it shows', async () => {
  await renderInPage(
    <>
      <Sparkbars values={[0, 4, 1]} label="5 in 24 hours" />
      <StackedMeter label="Progress" parts={[{ label: 'published', value: 1200, role: 'done' }]} />
    </>,
  );
  expect(screen.getByRole('img', { name: '5 in 24 hours' }).children).toHaveLength(3);
  expect(screen.getByRole('figure', { name: 'Progress' }).textContent).toMatch(/published 1.200/);
});

test('failures stay and are alerts, others are statuses that can be undone', async () => {
  const undo = vi.fn<() => void>();
  const Page = () => {
    const show = useToast();
    return (
      <>
        <Button onPress={() => show({ text: 'Snoozed', undo })}>Snooze</Button>
        <Button onPress={() => show({ text: 'No right', isFailure: true })}>Fail</Button>
      </>
    );
  };
  await renderInPage(
    <ToastsProvider>
      <Page />
    </ToastsProvider>,
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Snooze' }));
  await user.click(screen.getByRole('button', { name: 'Fail' }));
  expect(screen.getByRole('alert').textContent).toContain('No right');
  await user.click(screen.getByRole('button', { name: 'Undo' }));
  expect(undo).toHaveBeenCalledTimes(1);
  expect(screen.queryByText('Snoozed')).toBeNull();
});

test('tabs are links, and facts without a value are left out', async () => {
  await renderInPage(
    <>
      <TabLinks
        label="Parts"
        tabs={[
          { to: '/a', label: 'Error', isCurrent: true, hint: '1' },
          { to: '/a', search: { tab: 'headers' }, label: 'Headers', count: 14, isCurrent: false },
        ]}
      />
      <Definitions
        items={[
          { term: 'group', value: null },
          { term: 'key', value: 'C-17' },
        ]}
      />
    </>,
  );
  expect(screen.getByRole('link', { current: 'page' }).textContent).toBe('Error');
  expect(screen.queryByText('group')).toBeNull();
  expect(screen.getByRole('definition').textContent).toBe('C-17');
});

test('new rows wait behind a pill', async () => {
  const onLoad = vi.fn<() => void>();
  await renderInPage(<NewRowsPill count={37} onLoad={onLoad} />);
  await userEvent.setup().click(screen.getByRole('button', { name: '37 new' }));
  expect(onLoad).toHaveBeenCalledTimes(1);
});

test('the pane is resized by keys and closed by Escape', async () => {
  const onClose = vi.fn<() => void>();
  await renderInPage(
    <PeekLayout label="Preview" pane={<button type="button">inside</button>} onClose={onClose}>
      list
    </PeekLayout>,
  );
  const user = userEvent.setup();
  const handle = screen.getByRole('separator', { name: 'Resize the pane' });
  handle.focus();
  await user.keyboard('{ArrowLeft}');
  expect(handle.getAttribute('aria-valuenow')).toBe('512');
  screen.getByRole('button', { name: 'inside' }).focus();
  await user.keyboard('{Escape}');
  expect(onClose).toHaveBeenCalledTimes(1);
});
