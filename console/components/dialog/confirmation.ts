import type { ReactNode } from 'react';

/** One input of a confirmation. */
export type ConfirmationField = Readonly<{
  name: string;
  label: string;
  kind: 'line' | 'lines' | 'check';
  hint?: string;
  initial?: string;
  /** For `check` it must be set. */
  isRequired?: boolean;
  maxLength?: number;
  /** Why it cannot be changed. */
  disabledReason?: string | undefined;
}>;

/** What somebody is asked before something happens that cannot be undone, or that needs a reason. */
export type Confirmation = Readonly<{
  title: string;
  /** What will be true afterwards. */
  consequence: ReactNode;
  /** The verb of the button, never "Yes". */
  action: string;
  isDangerous?: boolean;
  /** Focus begins in the first field, for what asks for a text rather than for a decision. */
  startsInField?: boolean;
  fields?: readonly ConfirmationField[];
  /** Has to be typed: a count or a name, for many items or in production. */
  typed?: string;
  /** Rejects with the error to show; the dialog stays open then. Checks give `'true'` or `''`. */
  perform: (values: Readonly<Record<string, string>>) => Promise<void>;
}>;

export const reasonField = (label: string, hint: string, isRequired = true): ConfirmationField => ({
  name: 'reason',
  label,
  hint,
  kind: 'lines',
  isRequired,
  maxLength: 1000,
});
