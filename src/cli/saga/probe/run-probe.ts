import { checks, newProbe, type Check } from './probe-checks.ts';
import type { ProbedParticipant } from './probed-participant.ts';

export type CheckResult = Readonly<{
  check: string;
  rule: string;
  result: 'pass' | 'fail' | 'skipped';
  /** What is wrong, or why the check was skipped. */
  found: string | null;
}>;

/** The first checks, without which the others make no sense. */
const BASICS = 2;

/** Runs the checks one after another, each in its own saga, and undoes its action. */
export async function* runProbe(
  participant: ProbedParticipant,
  otherBody: unknown,
): AsyncGenerator<CheckResult> {
  let isUsable = true;
  for (const [index, check] of checks.entries()) {
    if (isUsable || index < BASICS) {
      const result = await runCheck(participant, check, otherBody);
      if (index < BASICS && result.result === 'fail') isUsable = false;
      yield result;
    } else {
      const { name, rule } = check;
      yield { check: name, rule, result: 'skipped', found: 'the action and its undo do not work' };
    }
  }
}

async function runCheck(
  participant: ProbedParticipant,
  { name, rule, run }: Check,
  otherBody: unknown,
): Promise<CheckResult> {
  const probe = newProbe(participant, otherBody);
  const found = await run(probe);
  await probe.undo({ attempt: 9 });
  return { check: name, rule, result: found === null ? 'pass' : 'fail', found };
}
