import { randomUUID } from 'node:crypto';
import type { ProbeCall, ProbedParticipant, ProbeReply } from './probed-participant.ts';

/** What is wrong; null if the check passed. */
export type Flaw = string | null;

export type Check = Readonly<{
  name: string;
  /** What the participant must do. */
  rule: string;
  run(probe: Probe): Promise<Flaw>;
}>;

/** Every check has its own saga. */
export type Probe = Readonly<{
  action(more?: Partial<ProbeCall>): Promise<ProbeReply>;
  undo(more?: Partial<ProbeCall>): Promise<ProbeReply>;
  /** A different valid request body. */
  otherBody: unknown;
}>;

const OVERLAPPING = 5;

export function newProbe({ ask }: ProbedParticipant, otherBody: unknown): Probe {
  const sagaId = randomUUID();
  return {
    action: (more) => ask({ sagaId, op: 'action', ...more }),
    undo: (more) => ask({ sagaId, op: 'undo', ...more }),
    otherBody,
  };
}

const past = (): Date => new Date(Date.now() - 60_000);
const longAgo = (): Date => new Date(Date.now() - 50 * 365 * 86_400_000);

/** In order; the others depend on the first two. */
export const checks: readonly Check[] = [
  {
    name: 'action',
    rule: 'an action succeeds and returns JSON or nothing',
    run: async ({ action }) => isDone('the action', await action()),
  },
  {
    name: 'undo',
    rule: 'an action can be undone',
    run: async ({ action, undo }) => isDone('the action', await action()) ?? isDone('the undo', await undo()),
  },
  {
    name: 'action-again',
    rule: 'a duplicate action returns the same answer',
    run: async ({ action }) => {
      const first = await action();
      return isDone('the action', first) ?? isSame('the second', first, await action({ attempt: 2 }));
    },
  },
  {
    name: 'undo-again',
    rule: 'a duplicate undo returns the same answer',
    run: async ({ action, undo }) => {
      await action();
      const first = await undo();
      return isDone('the undo', first) ?? isSame('the second', first, await undo({ attempt: 2 }));
    },
  },
  {
    name: 'action-after-undo',
    rule: 'an action is not executed again after its undo',
    run: async ({ action, undo }) => {
      await action();
      return isDone('the undo', await undo()) ?? isUndone(await action({ attempt: 2 }));
    },
  },
  {
    name: 'undo-first',
    rule: 'an undo before its action succeeds, and the late action is rejected',
    run: async ({ action, undo }) => isDone('the undo', await undo()) ?? isUndone(await action()),
  },
  {
    name: 'overlapping-actions',
    rule: 'concurrent duplicates of an action return the same answer',
    run: async ({ action }) => {
      const replies = await Promise.all(Array.from({ length: OVERLAPPING }, () => action()));
      const [first, ...others] = replies as [ProbeReply, ...ProbeReply[]];
      return others.reduce<Flaw>(
        (flaw, other) => flaw ?? isSame('one of them', first, other),
        isDone('the action', first),
      );
    },
  },
  {
    name: 'overlapping-undo',
    rule: 'a concurrent undo takes precedence over its action',
    run: async ({ action, undo }) => {
      const [, undone] = await Promise.all([action(), undo(), undo()]);
      return isDone('the undo', undone) ?? isUndone(await action({ attempt: 2 }));
    },
  },
  {
    name: 'other-body',
    rule: 'the same step with a different body is rejected',
    run: async ({ action, otherBody }) => {
      const first = isDone('the action', await action());
      return first ?? isStatus([422, 409, 400], 'the other body', await action({ body: otherBody }));
    },
  },
  {
    name: 'other-step',
    rule: 'steps of the same saga are independent',
    run: async ({ action, undo }) => {
      await action();
      const flaw = isDone('the undo', await undo());
      if (flaw !== null) return flaw;
      const step = 'redrive-probe-2';
      const other = isDone('the action of the other step', await action({ step }));
      await undo({ step });
      return other;
    },
  },
  {
    name: 'late-action',
    rule: 'an action does not start after its saga-deadline',
    run: async ({ action }) =>
      isStatus([408], 'the late action', await action({ deadline: past() })) ??
      isDone('the action in time', await action({ attempt: 2 })),
  },
  {
    name: 'late-undo',
    rule: 'an undo does not start after its saga-deadline',
    run: async ({ action, undo }) => {
      await action();
      const late = isStatus([408], 'the late undo', await undo({ deadline: past() }));
      return late ?? isDone('the undo in time', await undo({ attempt: 2 }));
    },
  },
  {
    name: 'late-repetition',
    rule: 'a known answer is also returned after the saga-deadline',
    run: async ({ action }) => {
      const first = await action();
      return isDone('the action', first) ?? isSame('the late one', first, await action({ deadline: past() }));
    },
  },
  {
    name: 'forgotten-undo',
    rule: 'an undo of an action older than the retention returns 410',
    run: async ({ undo }) => isStatus([410], 'the undo', await undo({ startedAt: longAgo() })),
  },
  ...['saga-id', 'saga-step', 'saga-op'].map((header): Check => {
    return {
      name: `no-${header}`,
      rule: `a call without ${header} is rejected`,
      run: async ({ action }) => isStatus([400], 'the call', await action({ without: [header] })),
    };
  }),
];

function describe({ label, text, result }: ProbeReply): string {
  const said = text.trim().slice(0, 120);
  return [label, result === null ? '' : ` saga-result: ${result}`, said && ` ${said}`].join('');
}

function isDone(what: string, reply: ProbeReply): Flaw {
  const { status, text } = reply;
  if (status === 202) return `${what} timed out while still working`;
  if (status < 200 || status > 299) return `${what} returned ${describe(reply)}`;
  if (text.trim() === '') return null;
  try {
    JSON.parse(text);
    return null;
  } catch {
    return `${what} did not return JSON: ${describe(reply)}`;
  }
}

function isSame(what: string, first: ProbeReply, other: ProbeReply): Flaw {
  if (first.status === other.status && first.text === other.text) return null;
  return `${what} returned ${describe(other)}, the first ${describe(first)}`;
}

function isUndone(reply: ProbeReply): Flaw {
  if (reply.status >= 200 && reply.status <= 299)
    return `the action was executed after its undo: ${describe(reply)}`;
  if (reply.status === 409 && reply.result === 'already-compensated') return null;
  return `the action after the undo returned ${describe(reply)}, not 409 with saga-result: already-compensated`;
}

function isStatus(expected: readonly number[], what: string, reply: ProbeReply): Flaw {
  if (expected.includes(reply.status)) return null;
  return `${what} returned ${describe(reply)}, not ${expected.join(' or ')}`;
}
