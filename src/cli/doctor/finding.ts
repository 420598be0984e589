import { messageOf } from '../../kernel/errors.ts';

/** The result of one check. `warning`: it works, but needs attention. `problem`: it does not work. */
export type Finding = Readonly<{
  check: string;
  status: 'ok' | 'warning' | 'problem' | 'skipped';
  found: string;
  /** What to do. Every warning and problem has it. */
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

/** An unexpected error in a check is reported as a problem; the other checks still run. */
export async function attempt(check: string, examine: () => Promise<Finding>): Promise<Finding> {
  try {
    return await examine();
  } catch (error) {
    return problem(
      check,
      `the check failed: ${messageOf(error)}`,
      'see the error message and the other checks',
    );
  }
}
