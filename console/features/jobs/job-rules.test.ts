import { expect, test } from 'vitest';
import type { JobDetails } from '../../lib/server-shapes.ts';
import { durationMs, durationText, lastEvent, nameOf, shownStatus } from './job-words.ts';
import { stateOf } from './job/job-state.tsx';
import { en } from './job/texts/en.ts';
import { ja } from './job/texts/ja.ts';
import { requeueTerms } from './list/job-qualifiers.ts';
import { countOf } from './requeue/use-requeue.ts';

const job: JobDetails = {
  job_id: '01a1f506-0000-7000-8000-00000000d246',
  queue: 'mail',
  payload: {},
  status: 'pending',
  retry_count: 0,
  max_retries: 3,
  error_message: null,
  result: null,
  dedupe_key: null,
  priority: 0,
  run_at: '2026-02-01T10:00:00Z',
  created_at: '2026-02-01T09:00:00Z',
  started_at: null,
  completed_at: null,
  resolution: null,
  needs_attention: false,
  deferrals: 0,
  progress: null,
  trace: null,
  created_by: null,
  fingerprint: null,
  lease: null,
  attempts: [],
  actions: [],
};
const now = Date.parse('2026-02-01T10:00:30Z');

test('every status is a sentence, and no two are the same', () => {
  const states: readonly Partial<JobDetails>[] = [
    {},
    { run_at: '2026-02-01T11:00:00Z' },
    { status: 'running', run_at: null, lease: { owner: 'w-1', until: null, epoch: 1 } },
    { status: 'failed', retry_count: 1 },
    { status: 'completed' },
    { status: 'dead_letter', retry_count: 3 },
    { status: 'dead_letter', resolution: 'cancelled' },
    { status: 'dead_letter', resolution: 'discarded' },
  ];
  for (const texts of [en, ja]) {
    const says = states.map((change) => stateOf({ ...job, ...change }, texts, now).says);
    expect(new Set(says).size).toBe(states.length);
  }
  expect(stateOf({ ...job, status: 'running', retry_count: 1 }, en, now).says).toBe(
    'Attempt 2 of 3 runs on an unnamed worker. Started:',
  );
});

test('a job is named by its dedupe key, else by both ends of its id', () => {
  expect(nameOf({ ...job, dedupe_key: 'order-7' })).toBe('order-7');
  expect(nameOf(job)).toBe('01a1f506…d246');
});

test('a dead letter that somebody dealt with is shown as that', () => {
  expect(shownStatus({ status: 'dead_letter', resolution: null })).toBe('dead_letter');
  expect(shownStatus({ status: 'dead_letter', resolution: 'discarded' })).toBe('discarded');
});

test('only an attempt that was started has a duration', () => {
  expect(durationMs(job, now)).toBeNull();
  const started = { ...job, started_at: '2026-02-01T10:00:00Z' };
  expect(durationMs({ ...started, status: 'failed' }, now)).toBeNull();
  expect(durationMs({ ...started, status: 'running' }, now)).toBe(30_000);
  const ended = { ...started, status: 'completed', completed_at: '2026-02-01T10:00:00.250Z' } as const;
  expect(durationMs(ended, now)).toBe(250);
  expect(durationText(250, String)).toBe('250 ms');
  expect(durationText(2500, String)).toBe('2500');
  expect(lastEvent(ended)).toBe(ended.completed_at);
});

test('a requeue selects what the list shows, without what every dead letter has', () => {
  expect(requeueTerms('status:dead_letter resolution:unresolved queue:mail error:"no such user"')).toBe(
    'queue:mail error:"no such user"',
  );
  expect(requeueTerms('status:failed')).toBe('status:failed');
});

test('the count of a preview leaves out what would be skipped, and is unknown if not all was counted', () => {
  const preview = { preview: true, matched: 12, has_more: false, dedupe_key_taken: 2, sample: [] } as const;
  expect(countOf(preview)).toBe(10);
  expect(countOf({ ...preview, has_more: true })).toBeNull();
});
