import type { ParticipantCall, ParticipantScript } from './script.ts';
import type { StepEffect } from './steps-book.ts';

/** What the participant's own process is told, and what it tells. */
export type ParticipantCommand =
  | Readonly<{ command: 'set_script'; script: ParticipantScript }>
  | Readonly<{ command: 'release'; tag: string }>
  | Readonly<{ command: 'deliver_again'; except: readonly string[] }>
  | Readonly<{ command: 'effects' | 'arrivals' }>;

export type ParticipantReply = Readonly<{
  effects?: readonly StepEffect[];
  arrivals?: readonly ParticipantCall[];
  /** It could not do what it was told. */
  error?: string;
}>;
