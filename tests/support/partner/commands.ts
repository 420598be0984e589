import type { SeenRequest } from '../partner.ts';
import type { Effect } from './effects.ts';
import type { ScriptRules } from './script.ts';

/** What the partner's own process is told, and what it tells. */
export type PartnerCommand =
  | Readonly<{ command: 'set_script'; script: ScriptRules }>
  | Readonly<{ command: 'release' | 'effects' | 'requests' | 'counts' }>;

export type PartnerReply = Readonly<{
  effects?: readonly Effect[];
  requests?: readonly SeenRequest[];
  counts?: PartnerCounts;
}>;

export type PartnerCounts = Readonly<{
  requests: number;
  /** About the status of an order. */
  questions: number;
  /** Keys that had an effect. */
  keys: number;
  effects: number;
  /** Keys that had more than one. */
  doubled: number;
}>;
