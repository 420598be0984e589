import type { Op, ParticipantCall } from './script.ts';

/** Something that has really happened. */
export type StepEffect = Readonly<{ sagaId: string; step: string; op: Op; attempt: number }>;

export type StepReply = Readonly<{ status: number; body: string; retryAfterS?: number }>;

/** What the participant's own code does with a call that it is given; what is begun ends after a while. */
export type Handling = Readonly<{ do: 'do' | 'refuse' }> | Readonly<{ do: 'begin'; ms: number }>;

/** A participant's side of a call, and its book of what has been committed. */
export type StepsBook = Readonly<{
  arrive(call: ParticipantCall, handling: Handling): Promise<StepReply>;
  /** Those of one step in the order of their commits. */
  effects(): Promise<readonly StepEffect[]>;
}>;

/** Who looks at nothing: every call that gets through is an effect. */
export function openBareBook(): StepsBook {
  const effects: StepEffect[] = [];
  return {
    async arrive({ sagaId, step, op, attempt }, handling) {
      if (handling.do === 'refuse') return { status: 409, body: '{"no":true}' };
      effects.push({ sagaId, step, op, attempt });
      return { status: 200, body: '{"done":true}' };
    },
    effects: async () => effects,
  };
}
