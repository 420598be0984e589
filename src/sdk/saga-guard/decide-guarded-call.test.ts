import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  decideAction,
  decideUndo,
  phases,
  type GuardRow,
  type Moment,
  type StoredAnswer,
} from './decide-guarded-call.ts';

const answer: StoredAnswer = { status: 200, body: '{"id":1}' };
const inTime: Moment = { isLate: false, isForgotten: false };

function rowOf(more: Partial<GuardRow>): GuardRow {
  return {
    phase: 'done',
    isUndoRequested: false,
    isLeaseOver: false,
    isDeferred: false,
    run: 1,
    digest: 'a',
    answer: null,
    ...more,
  };
}

test('a stored answer is told however late it is asked for', () => {
  const late: Moment = { isLate: true, isForgotten: true };
  for (const phase of ['done', 'refused'] as const)
    assert.deepEqual(decideAction({ ...late, digest: 'a' }, rowOf({ phase, answer })), {
      do: 'replay',
      answer,
    });
  assert.deepEqual(decideUndo(late, rowOf({ phase: 'undone', answer })), { do: 'replay', answer });
  for (const phase of ['refused', 'void'] as const)
    assert.equal(decideUndo(late, rowOf({ phase })).do, 'nothing_to_undo');
  for (const phase of ['undone', 'void'] as const)
    assert.equal(decideAction({ ...late, digest: 'a' }, rowOf({ phase })).do, 'already_undone');
});

test('what would begin after its deadline does not begin', () => {
  const late: Moment = { isLate: true, isForgotten: false };
  assert.equal(decideAction({ ...late, digest: 'a' }, null).do, 'too_late');
  assert.equal(decideUndo(late, null).do, 'too_late');
  assert.equal(decideUndo(late, rowOf({ phase: 'done' })).do, 'too_late');
  const lost = rowOf({ phase: 'working', isLeaseOver: true });
  assert.equal(decideAction({ ...late, digest: 'a' }, lost).do, 'too_late');
  assert.equal(decideUndo(late, lost).do, 'too_late');
});

test('without a row, a saga older than the retention is told that nobody knows', () => {
  const old: Moment = { isLate: false, isForgotten: true };
  assert.equal(decideUndo(old, null).do, 'forgotten');
  assert.equal(decideAction({ ...old, digest: 'a' }, null).do, 'forgotten');
  assert.equal(decideUndo(old, rowOf({ phase: 'done' })).do, 'undo');
});

test('another body is a mismatch once the action has ended, and waits before', () => {
  assert.equal(decideAction({ ...inTime, digest: 'b' }, rowOf({ phase: 'done', answer })).do, 'mismatch');
  assert.equal(decideAction({ ...inTime, digest: 'b' }, rowOf({ phase: 'refused', answer })).do, 'mismatch');
  for (const isLeaseOver of [false, true])
    assert.equal(
      decideAction({ ...inTime, digest: 'b' }, rowOf({ phase: 'working', isLeaseOver })).do,
      'wait',
    );
});

test('a row that a handler committed by itself is undone, and never answered as done', () => {
  assert.equal(decideAction({ ...inTime, digest: 'a' }, rowOf({ answer: null })).do, 'no_answer');
  assert.deepEqual(decideUndo(inTime, rowOf({ answer: null })), { do: 'undo', answer: null });
});

/**
 * What happens at a participant, in any order: calls arrive, leases run out, and processes that run a long action
 * end it, however late, or die. The row changes as the guard's statements change it.
 */
type Event =
  | Readonly<{ kind: 'action' | 'undo'; isLong: boolean; ends: 'done' | 'refused' | 'broken'; late: boolean }>
  | Readonly<{ kind: 'complete'; run: number; ends: 'done' | 'refused' | 'broken' }>
  | Readonly<{ kind: 'lease_ends' }>;

const ends = fc.constantFrom('done', 'refused', 'broken');
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('action', 'undo'),
    isLong: fc.boolean(),
    ends,
    late: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('complete'), run: fc.integer({ min: 1, max: 3 }), ends }),
  fc.constant<Event>({ kind: 'lease_ends' }),
);

class Participant {
  row: GuardRow | null = null;
  readonly effects: ('action' | 'undo')[] = [];

  happen(what: Event): void {
    if (what.kind === 'lease_ends') {
      if (this.row?.phase === 'working') this.row = { ...this.row, isLeaseOver: true };
    } else if (what.kind === 'complete') this.#complete(what.run, what.ends);
    else if (what.kind === 'action') this.#act(what);
    else this.#undo(what);
  }

  #act({ isLong, ends, late }: Extract<Event, { late: boolean }>): void {
    const decision = decideAction({ ...inTime, isLate: late, digest: 'a' }, this.row);
    if (decision.do !== 'begin' && decision.do !== 'take_over') return;
    const run = decision.do === 'begin' ? 1 : decision.run + 1;
    if (isLong) this.row = rowOf({ phase: 'working', run });
    else this.#settle(ends, run);
  }

  #complete(run: number, ends: 'done' | 'refused' | 'broken'): void {
    if (this.row?.phase !== 'working' || this.row.run !== run) return;
    if (this.row.isUndoRequested) this.row = rowOf({ phase: 'void', run });
    else this.#settle(ends, run);
  }

  #settle(ends: 'done' | 'refused' | 'broken', run: number): void {
    if (ends === 'broken') return;
    if (ends === 'done') this.effects.push('action');
    this.row = rowOf({ phase: ends, run, answer });
  }

  #undo({ ends, late }: Extract<Event, { late: boolean }>): void {
    const decision = decideUndo({ ...inTime, isLate: late }, this.row);
    if (decision.do === 'undo' && ends === 'done') {
      this.effects.push('undo');
      this.row = rowOf({ phase: 'undone', answer });
    }
    if (decision.do === 'make_void') this.row = rowOf({ phase: 'void' });
    if (decision.do === 'nothing_to_undo' && this.row === null) this.row = rowOf({ phase: 'void' });
    if (decision.do === 'request_undo' && this.row !== null)
      this.row = { ...this.row, isUndoRequested: true };
  }
}

test('each effect comes once at most, an undo after its action, and no action after its undo', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.array(event, { maxLength: 12 }), (events) => {
      const participant = new Participant();
      let wasFinal = false;
      for (const each of events) {
        participant.happen(each);
        const phase = participant.row?.phase;
        const isFinal = phase === 'undone' || phase === 'void';
        assert.ok(isFinal || !wasFinal, 'undone and void are final');
        wasFinal = isFinal;
        if (phase !== undefined) seen.add(phase);
      }
      assert.ok(
        ['', 'action', 'action,undo'].includes(participant.effects.join(',')),
        participant.effects.join(','),
      );
    }),
    { numRuns: 2000 },
  );
  assert.deepEqual([...seen].sort(), [...phases].sort());
});
