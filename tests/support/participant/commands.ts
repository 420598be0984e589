import type { ParticipantCall, ParticipantScript } from './script.ts';
import type { StepEffect } from './steps-book.ts';

/** What the participant's own process is told, and what it tells. */
export type ParticipantCommand =
  | Readonly<{ command: 'set_script'; script: ParticipantScript }>
  | Readonly<{ command: 'release' | 'effects' | 'arrivals' | 'deliver_again' }>;

export type ParticipantReply = Readonly<{
  guarded?: readonly StepEffect[];
  bare?: readonly StepEffect[];
  arrivals?: readonly ParticipantCall[];
}>;
