import type { Principal } from '../access/principal.ts';
import type { Resource } from '../access/scope.ts';
import type { Action } from './actions.ts';

/** Who acts: a principal, or what acts without one. */
export type ActorType = Principal['type'] | 'policy' | 'sdk' | 'cli' | 'system';

/** What all audit events of one request have in common: who acts, by which permission, and why. */
export type Act = Readonly<{
  actor: Readonly<{
    type: ActorType;
    /** As in the histories of items. */
    id: string;
    name: string;
    roles: readonly string[];
  }>;
  /** The permission; of acts without one a name in the same form. */
  action: Action;
  reason: string | null;
  request: Readonly<{
    id: string | null;
    traceId: string | null;
    address: string | null;
    agent: string | null;
  }>;
}>;

export const outcomes = ['success', 'failure', 'denied', 'started', 'unknown'] as const;
export type Outcome = (typeof outcomes)[number];

/** What was acted on, and with which outcome. */
export type ActResult = Readonly<{
  /** `dlq/messages/<id>`: the slice, the kind and the name. */
  resource: string;
  /** By which names narrowed roles see the event; without any only roles that are not narrowed do. */
  names?: Resource;
  /** Default: success. */
  outcome?: Outcome;
  /** Shared by the events of one operation. */
  operationId?: string | null;
  /** How many items the act was about; default: 1. */
  items?: number;
  /** Never bytes of payloads. */
  detail?: Readonly<Record<string, unknown>> | null;
}>;
