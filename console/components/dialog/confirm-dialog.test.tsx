import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { cleanUpAfterEach, renderInPage } from '../testing/render-in-page.tsx';
import { ConfirmDialog } from './confirm-dialog.tsx';
import { reasonField, type Confirmation } from './confirmation.ts';

cleanUpAfterEach();

function Page({ confirmation }: Readonly<{ confirmation: Confirmation }>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Delete…
      </button>
      <ConfirmDialog confirmation={isOpen ? confirmation : null} onEnd={() => setOpen(false)} />
    </>
  );
}
const confirmation = (perform: Confirmation['perform']): Confirmation => ({
  title: 'Delete 3 messages',
  consequence: 'Their payload is gone for ever.',
  action: 'Delete 3 messages',
  isDangerous: true,
  fields: [reasonField('Reason', 'Stored with it.')],
  typed: '3',
  perform,
});
const open = async () => {
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Delete…' }));
  await screen.findByRole('alertdialog', { name: 'Delete 3 messages' });
  return user;
};
const action = () => screen.getByRole('button', { name: 'Delete 3 messages' });

test('focus begins on Cancel and returns to where it was', async () => {
  await renderInPage(<Page confirmation={confirmation(async () => {})} />);
  const user = await open();
  await waitFor(() => expect(document.activeElement?.textContent).toContain('Cancel'));
  await user.keyboard('{Escape}');
  await waitFor(() => expect(screen.queryByRole('alertdialog')).toBeNull());
  await waitFor(() => expect(document.activeElement?.textContent).toBe('Delete…'));
});

test('nothing happens before the reason and the count are given', async () => {
  const perform = vi.fn<Confirmation['perform']>(async () => {});
  await renderInPage(<Page confirmation={confirmation(perform)} />);
  const user = await open();
  await user.click(action());
  expect(action().getAttribute('aria-disabled')).toBe('true');
  await user.type(screen.getByRole('textbox', { name: 'Reason' }), 'duplicates{Control>}{Enter}{/Control}');
  expect(perform).not.toHaveBeenCalled();
  await user.type(screen.getByRole('textbox', { name: 'Type 3 to confirm' }), '3{Control>}{Enter}{/Control}');
  await waitFor(() => expect(screen.queryByRole('alertdialog')).toBeNull());
  expect(perform).toHaveBeenCalledExactlyOnceWith({ reason: 'duplicates' });
});

test('a failure is shown and the dialog stays open', async () => {
  await renderInPage(
    <Page
      confirmation={confirmation(async () => {
        throw new Error('it is being retried');
      })}
    />,
  );
  const user = await open();
  await user.type(screen.getByRole('textbox', { name: 'Reason' }), 'duplicates');
  await user.type(screen.getByRole('textbox', { name: 'Type 3 to confirm' }), '3');
  await user.click(action());
  expect((await screen.findByRole('alert')).textContent).toBe('it is being retried');
  expect(action().getAttribute('aria-disabled')).toBeNull();
});
