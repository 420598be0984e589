import { randomUUID } from 'node:crypto';
import type { ProbeCall, ProbedParticipant, ProbeReply } from './probed-participant.ts';

/** What one check found: null where it is as it must be, else what is wrong. */
export type Flaw = string | null;

export type Check = Readonly<{
  name: string;
  /** What must hold, as a sentence. */
  rule: string;
  run(probe: Probe): Promise<Flaw>;
}>;

/** One saga of its own for every check. */
export type Probe = Readonly<{
  action(more?: Partial<ProbeCall>): Promise<ProbeReply>;
  undo(more?: Partial<ProbeCall>): Promise<ProbeReply>;
  /** Another body that means another request. */
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

/** In this order; the first two are what all others build upon. */
export const checks: readonly Check[] = [
  {
    name: 'action',
    rule: 'an action is done, and answers with JSON or nothing',
    run: async ({ action }) => isDone('the action', await action()),
  },
  {
    name: 'undo',
    rule: 'a done action can be undone',
    run: async ({ action, undo }) => isDone('the action', await action()) ?? isDone('the undo', await undo()),
  },
  {
    name: 'action-again',
    rule: 'the same action again gets the same answer',
    run: async ({ action }) => {
      const first = await action();
      return isDone('the action', first) ?? isSame('the second', first, await action({ attempt: 2 }));
    },
  },
  {
    name: 'undo-again',
    rule: 'the same undo again gets the same answer',
    run: async ({ action, undo }) => {
      await action();
      const first = await undo();
      return isDone('the undo', first) ?? isSame('the second', first, await undo({ attempt: 2 }));
    },
  },
  {
    name: 'action-after-undo',
    rule: 'an action that was undone is not done again',
    run: async ({ action, undo }) => {
      await action();
      return isDone('the undo', await undo()) ?? isUndone(await action({ attempt: 2 }));
    },
  },
  {
    name: 'undo-first',
    rule: 'an undo before its action succeeds, and the late action is not done',
    run: async ({ action, undo }) => isDone('the undo', await undo()) ?? isUndone(await action()),
  },
  {
    name: 'overlapping-actions',
    rule: 'one action that arrives several times at once gets one answer',
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
    rule: 'an undo that arrives together with its action has the last word',
    run: async ({ action, undo }) => {
      const [, undone] = await Promise.all([action(), undo(), undo()]);
      return isDone('the undo', undone) ?? isUndone(await action({ attempt: 2 }));
    },
  },
  {
    name: 'other-body',
    rule: 'the same step with another body is refused',
    run: async ({ action, otherBody }) => {
      const first = isDone('the action', await action());
      return first ?? isStatus([422, 409, 400], 'the other body', await action({ body: otherBody }));
    },
  },
  {
    name: 'other-step',
    rule: 'another step of the same saga is another matter',
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
    rule: 'an action does not begin after its saga-deadline',
    run: async ({ action }) =>
      isStatus([408], 'the late action', await action({ deadline: past() })) ??
      isDone('the action in time', await action({ attempt: 2 })),
  },
  {
    name: 'late-undo',
    rule: 'an undo does not begin after its saga-deadline',
    run: async ({ action, undo }) => {
      await action();
      const late = isStatus([408], 'the late undo', await undo({ deadline: past() }));
      return late ?? isDone('the undo in time', await undo({ attempt: 2 }));
    },
  },
  {
    name: 'late-repetition',
    rule: 'what is known is told after the saga-deadline too',
    run: async ({ action }) => {
      const first = await action();
      return isDone('the action', first) ?? isSame('the late one', first, await action({ deadline: past() }));
    },
  },
  {
    name: 'forgotten-undo',
    rule: 'an undo of what nobody can remember is no empty success',
    run: async ({ undo }) => isStatus([410], 'the undo', await undo({ startedAt: longAgo() })),
  },
  ...['saga-id', 'saga-step', 'saga-op'].map((header): Check => {
    return {
      name: `no-${header}`,
      rule: `a call without ${header} is refused`,
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
  if (status === 202) return `${what} was still working when the time was over`;
  if (status < 200 || status > 299) return `${what} was answered with ${describe(reply)}`;
  if (text.trim() === '') return null;
  try {
    JSON.parse(text);
    return null;
  } catch {
    return `${what} was answered with something else than JSON: ${describe(reply)}`;
  }
}

function isSame(what: string, first: ProbeReply, other: ProbeReply): Flaw {
  if (first.status === other.status && first.text === other.text) return null;
  return `${what} was answered with ${describe(other)}, the first with ${describe(first)}`;
}

function isUndone(reply: ProbeReply): Flaw {
  if (reply.status >= 200 && reply.status <= 299)
    return `the action was done after its undo: ${describe(reply)}`;
  if (reply.status === 409 && reply.result === 'already-compensated') return null;
  return `the action after the undo was answered with ${describe(reply)}, not with 409 and saga-result: already-compensated`;
}

function isStatus(expected: readonly number[], what: string, reply: ProbeReply): Flaw {
  if (expected.includes(reply.status)) return null;
  return `${what} was answered with ${describe(reply)}, not with ${expected.join(' or ')}`;
}
