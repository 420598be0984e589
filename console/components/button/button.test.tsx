import { cleanup, render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { Button } from './button.tsx';
import { printKeys } from './key-hint.tsx';

afterEach(cleanup);

test('a button shows its key, and names it to assistive technology', async () => {
  const press = vi.fn();
  render(
    <Button onPress={press} keys="Control+Enter">
      Redrive
    </Button>,
  );
  const button = screen.getByRole('button', { name: 'Redrive' });
  expect(button.getAttribute('aria-keyshortcuts')).toBe('Control+Enter');
  expect(button.textContent).toContain('Ctrl ⏎');
  await userEvent.click(button);
  expect(press).toHaveBeenCalledOnce();
});

test('a button that cannot be used can be reached, says why, and does nothing', async () => {
  const press = vi.fn();
  render(
    <Button onPress={press} disabledReason="Needs the permission dlq:messages:retry.">
      Retry
    </Button>,
  );
  await userEvent.tab();
  const button = screen.getByRole('button', { description: 'Needs the permission dlq:messages:retry.' });
  expect(document.activeElement).toBe(button);
  expect(button.getAttribute('aria-disabled')).toBe('true');
  await userEvent.keyboard('{Enter}');
  await userEvent.click(button);
  expect(press).not.toHaveBeenCalled();
});

test('keys are printed as on a keyboard', () => {
  expect(printKeys('g i')).toBe('g i');
  expect(printKeys('Control+Enter')).toBe('Ctrl ⏎');
  expect(printKeys('Shift+.')).toBe('Shift .');
  expect(printKeys('+')).toBe('+');
});
