import type { Act, ActorType } from '../../kernel/audit/act.ts';
import type { Action } from '../../kernel/audit/actions.ts';

const noRequest: Act['request'] = { id: null, traceId: null, address: null, agent: null };

/** What the server does by itself, as it was configured or asked to before. */
export function systemAct(action: Action, reason: string | null): Act {
  return actWithoutRequest({ type: 'system', id: 'system', name: 'redrive' }, action, reason);
}

/** What a retry policy does. */
export function policyAct(policy: string, action: Action, reason: string | null): Act {
  return actWithoutRequest({ type: 'policy', id: `policy:${policy}`, name: policy }, action, reason);
}

function actWithoutRequest(
  actor: Readonly<{ type: ActorType; id: string; name: string }>,
  action: Action,
  reason: string | null,
): Act {
  return { actor: { ...actor, roles: [] }, action, reason, request: noRequest };
}
