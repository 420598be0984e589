import type { Act } from '../../src/kernel/audit/act.ts';
import type { Action } from '../../src/kernel/audit/actions.ts';

/** An act of somebody called `tester`, for tests that call an action without a request. */
export function testAct(action: Action, reason: string | null = null): Act {
  return {
    actor: { type: 'local', id: 'tester', name: 'tester', roles: ['sys_admin'] },
    action,
    reason,
    request: { id: 'req_test', traceId: null, address: '127.0.0.1', agent: 'test' },
  };
}
