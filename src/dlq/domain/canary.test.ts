import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  canaryStep,
  isClosed,
  isRest,
  maxWindows,
  stageAfter,
  tooManyReturned,
  watchSecondsLeft,
  type Canary,
  type StageView,
} from './canary.ts';

const canaries: fc.Arbitrary<Canary> = fc.record({
  stages: fc
    .uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
    .map((stages) => stages.toSorted((a, b) => a - b)),
  watch_seconds: fc.integer({ min: 1, max: 10 }),
  stop_percent: fc.integer({ min: 0, max: 99 }),
});

/** How each message ends once it is sent. */
const endings = fc.array(fc.constantFrom('quiet', 'came_back', 'failed'), { maxLength: 80 });

type Run = {
  readonly canary: Canary;
  readonly endings: readonly string[];
  stage: number;
  drawn: number;
  acked: number;
  returned: number;
  nowMs: number;
  watchUntilMs: number | null;
};

function viewOf(run: Run): StageView {
  const isAll = isRest(run.canary, run.stage);
  return {
    stage: run.stage,
    hasUndrawn: !isAll && run.drawn < run.endings.length,
    open: 0,
    acked: run.acked,
    sample: run.acked,
    returned: run.returned,
    remainingMs: run.watchUntilMs === null ? null : run.watchUntilMs - run.nowMs,
    confirmingMs: 0,
  };
}

function send(run: Run, count: number): void {
  for (const ending of run.endings.slice(run.drawn, run.drawn + count)) {
    run.acked += Number(ending !== 'failed');
    run.returned += Number(ending === 'came_back');
  }
  run.drawn += count;
}

/** Runs to its end with an observer for each step; everything is confirmed at once. */
function runThrough(canary: Canary, ends: readonly string[], observe: (run: Run, step: string) => void): Run {
  const run: Run = {
    canary,
    endings: ends,
    stage: 1,
    drawn: 0,
    acked: 0,
    returned: 0,
    nowMs: 0,
    watchUntilMs: null,
  };
  for (let steps = 0; steps < 1000; steps += 1) {
    if (isRest(canary, run.stage)) send(run, ends.length - run.drawn);
    const view = viewOf(run);
    const step = canaryStep(canary, view);
    observe(run, step.step);
    switch (step.step) {
      case 'draw':
        send(run, Math.min(step.count, ends.length - run.drawn));
        break;
      case 'watch':
        run.watchUntilMs = run.nowMs + canary.watch_seconds * 1000;
        break;
      case 'wait':
        run.nowMs += step.ms;
        break;
      case 'confirm':
        assert.equal(step.isOverdue, false);
        run.stage = stageAfter(canary, view);
        run.watchUntilMs = null;
        break;
      case 'send':
        assert.fail('nothing is open');
        break;
      case 'stop':
      case 'finish':
        return run;
    }
  }
  return assert.fail('it does not end');
}

test('a canary ends, and what a stage sends never exceeds its bound', () => {
  fc.assert(
    fc.property(canaries, endings, (canary, ends) => {
      runThrough(canary, ends, (run) => {
        const bound = canary.stages[run.stage - 1];
        if (bound !== undefined) assert.ok(run.acked <= bound);
      });
    }),
  );
});

test('a stage begins only after the window of the stage before it, with few enough messages back', () => {
  fc.assert(
    fc.property(canaries, endings, (canary, ends) => {
      let stage = 1;
      let isWatched = false;
      runThrough(canary, ends, (run, step) => {
        if (run.stage !== stage) {
          assert.ok(isWatched, `stage ${stage} was not watched`);
          isWatched = false;
          stage = run.stage;
        }
        isWatched ||= step === 'confirm';
        if (step === 'confirm' || step === 'draw') assert.equal(tooManyReturned(canary, viewOf(run)), null);
      });
    }),
  );
});

test('a run with few enough messages back sends all of them and finishes', () => {
  fc.assert(
    fc.property(
      canaries,
      endings.map((ends) => ends.filter((end) => end !== 'came_back')),
      (canary, ends) => {
        const run = runThrough(canary, ends, (_, step) => assert.notEqual(step, 'stop'));
        assert.equal(run.drawn, ends.length);
        assert.ok(run.acked === 0 || isClosed(canary, run.stage));
      },
    ),
  );
});

const view: StageView = {
  stage: 2,
  hasUndrawn: true,
  open: 0,
  acked: 5,
  sample: 5,
  returned: 0,
  remainingMs: null,
  confirmingMs: 0,
};
const canary: Canary = { stages: [1, 5, 25], watch_seconds: 60, stop_percent: 10 };

test('more than the limit stops in every state of a stage, and the limit itself does not', () => {
  const states: readonly Partial<StageView>[] = [
    { open: 3 },
    { acked: 2 },
    {},
    { remainingMs: 10 },
    { remainingMs: 0 },
    { stage: 4 },
  ];
  for (const state of states) {
    assert.equal(canaryStep(canary, { ...view, ...state, sample: 20, returned: 3 }).step, 'stop');
    assert.notEqual(canaryStep(canary, { ...view, ...state, sample: 20, returned: 2 }).step, 'stop');
  }
  assert.match(
    tooManyReturned(canary, { sample: 25, returned: 9 }) ?? '',
    /^9 of 25 messages came back as dead letters; the limit is 10 %$/,
  );
});

test('a limit of 0 % stops at the first message that comes back', () => {
  const strict = { ...canary, stop_percent: 0 };
  assert.equal(canaryStep(strict, view).step, 'watch');
  assert.equal(canaryStep(strict, { ...view, sample: 1000, returned: 1 }).step, 'stop');
});

test('a stage that published nothing draws more, and without more messages there is nothing to watch', () => {
  assert.deepEqual(canaryStep(canary, { ...view, acked: 0, sample: 0 }), { step: 'draw', count: 5 });
  assert.deepEqual(canaryStep(canary, { ...view, acked: 3 }), { step: 'draw', count: 2 });
  assert.equal(canaryStep(canary, { ...view, acked: 0, hasUndrawn: false }).step, 'finish');
  assert.equal(canaryStep(canary, { ...view, acked: 1, hasUndrawn: false }).step, 'watch');
});

test('a window is confirmed after its end only, and is overdue after ten windows', () => {
  assert.deepEqual(canaryStep(canary, { ...view, remainingMs: 1 }), { step: 'wait', ms: 1 });
  const after = { ...view, remainingMs: 0 };
  assert.deepEqual(canaryStep(canary, after), { step: 'confirm', isOverdue: false });
  const confirmingMs = (maxWindows - 1) * 60_000;
  assert.deepEqual(canaryStep(canary, { ...after, confirmingMs: confirmingMs - 1 }), {
    step: 'confirm',
    isOverdue: false,
  });
  assert.deepEqual(canaryStep(canary, { ...after, confirmingMs }), { step: 'confirm', isOverdue: true });
});

test('the time left counts a window for each stage that has messages to send', () => {
  const left = (stage: number, messages: number): number => watchSecondsLeft(canary, stage, messages) / 60;
  assert.deepEqual([left(1, 100), left(3, 100), left(4, 100), left(5, 100)], [4, 2, 1, 0]);
  assert.deepEqual([left(1, 0), left(1, 1), left(1, 2), left(1, 25), left(1, 26)], [0, 1, 2, 3, 4]);
});

test('the stage after the last one is the rest, and its window is the last', () => {
  assert.equal(stageAfter(canary, { stage: 3, hasUndrawn: true }), 4);
  assert.ok(isRest(canary, 4) && !isClosed(canary, 4));
  assert.ok(isClosed(canary, stageAfter(canary, { stage: 4, hasUndrawn: false })));
  assert.ok(isClosed(canary, stageAfter(canary, { stage: 1, hasUndrawn: false })));
});
