import assert from 'node:assert/strict';

/** What the guard at a participant keeps of one step of one saga. */
export type Phase = 'working' | 'done' | 'refused' | 'undone' | 'void';

/** What the participant's own code does when the guard lets a call through. */
export type Handling = 'do' | 'refuse' | 'break' | 'begin';

export type Arrival = Readonly<{ op: 'EXECUTE' | 'COMPENSATE'; now: number; latestBegin: number }>;

export type Reply = 'done' | 'refused' | 'working' | 'unknown' | 'too_late' | 'not_found';

/**
 * A model of one step at a guarded participant: one row for action and undo, changed in the same transaction as the
 * effect. It counts committed effects, and fails by itself when one comes twice or in the wrong order.
 */
export class GuardedParticipant {
  phase: Phase | null = null;
  isUndoRequested = false;
  actions = 0;
  undos = 0;
  /**
   * Without a guard it keeps no answers: an action that comes again meets what is there, which is a conflict, and an
   * undo that finds nothing says so and leaves no mark.
   */
  readonly isBare: boolean;

  constructor({ isBare = false } = {}) {
    this.isBare = isBare;
  }

  arrive(call: Arrival, handling: Handling): Reply {
    return call.op === 'EXECUTE' ? this.#act(call, handling) : this.#undo(call, handling);
  }

  #act({ now, latestBegin }: Arrival, handling: Handling): Reply {
    switch (this.phase) {
      case 'done':
        return this.isBare ? 'refused' : 'done';
      case 'working':
        return 'working';
      case 'refused':
      case 'undone':
      case 'void':
        return 'refused';
      case null:
        break;
    }
    if (now > latestBegin) return 'too_late';
    switch (handling) {
      case 'do':
        this.#commitAction();
        return 'done';
      case 'refuse':
        this.phase = 'refused';
        return 'refused';
      case 'break':
        return 'unknown';
      case 'begin':
        this.phase = 'working';
        return 'working';
    }
  }

  #undo({ now, latestBegin }: Arrival, handling: Handling): Reply {
    switch (this.phase) {
      case 'undone':
      case 'refused':
      case 'void':
        return this.isBare ? 'not_found' : 'done';
      case 'working':
        this.isUndoRequested = true;
        return 'working';
      case null:
      case 'done':
        break;
    }
    if (now > latestBegin) return 'too_late';
    if (this.phase === null && this.isBare) return 'not_found';
    if (this.phase === null) {
      this.phase = 'void';
      return 'done';
    }
    if (handling === 'break') return 'unknown';
    if (handling === 'refuse') return 'refused';
    assert.equal(this.actions, 1, 'an undo without its action');
    assert.equal(this.undos, 0, 'a second undo');
    this.undos += 1;
    this.phase = 'undone';
    return 'done';
  }

  /** The long action comes to its end; one that is to be undone finds out in its last transaction. */
  complete(): void {
    if (this.phase !== 'working') return;
    if (this.isUndoRequested) this.phase = 'void';
    else this.#commitAction();
  }

  #commitAction(): void {
    assert.equal(this.actions, 0, 'a second effect of an action');
    assert.equal(this.undos, 0, 'an action after its undo');
    this.actions += 1;
    this.phase = 'done';
  }
}
