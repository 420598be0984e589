import { cleanup, render, screen } from '@testing-library/react';
import { Suspense } from 'react';
import { afterEach, expect, test } from 'vitest';
import type { Me } from '../../lib/server-shapes.ts';
import { Button } from '../button/button.tsx';
import { SessionProvider } from './session.tsx';
import { useMay } from './use-may.ts';

afterEach(cleanup);

const me: Me = {
  subject: 'user:x|1',
  name: 'ada',
  type: 'user',
  roles: ['sys_auditor'],
  permissions: ['dlq:messages:view'],
  scopes: [],
  environment: 'test',
  time: '2026-01-01T00:00:00Z',
};

function Action({ permission }: Readonly<{ permission: string }>) {
  return (
    <Button onPress={() => {}} disabledReason={useMay(permission).reason}>
      Act
    </Button>
  );
}

test('what the user may not do is visible, disabled, and says which permission is missing', async () => {
  const facts = { prefix: '', environment: 'test', login: null };
  const show = (permission: string) => (
    <Suspense>
      <SessionProvider session={{ me, facts, onLogout: () => {} }}>
        <Action permission={permission} />
      </SessionProvider>
    </Suspense>
  );
  const { rerender } = render(show('dlq:messages:retry'));
  const button = await screen.findByRole('button', { description: /dlq:messages:retry.*sys_auditor/ });
  expect(button.getAttribute('aria-disabled')).toBe('true');
  rerender(show('dlq:messages:view'));
  expect((await screen.findByRole('button')).getAttribute('aria-disabled')).toBeNull();
});
