import { messageOf } from '../../kernel/errors.ts';

/** What one check found. `warning`: it works, and somebody should look. `problem`: it does not work. */
export type Finding = Readonly<{
  check: string;
  status: 'ok' | 'warning' | 'problem' | 'skipped';
  found: string;
  /** What to do; always there for a warning and a problem. */
  advice?: string;
}>;

export function ok(check: string, found: string): Finding {
  return { check, status: 'ok', found };
}

export function skipped(check: string, found: string): Finding {
  return { check, status: 'skipped', found };
}

export function warning(check: string, found: string, advice: string): Finding {
  return { check, status: 'warning', found, advice };
}

export function problem(check: string, found: string, advice: string): Finding {
  return { check, status: 'problem', found, advice };
}

/** A check that fails in a way it did not expect is a problem too, and keeps no other check from running. */
export async function attempt(check: string, examine: () => Promise<Finding>): Promise<Finding> {
  try {
    return await examine();
  } catch (error) {
    return problem(
      check,
      `the check failed: ${messageOf(error)}`,
      'see the message; the other checks may explain it',
    );
  }
}
