import { formatCount } from '../../../../lib/sizes.ts';
import type { Texts } from '../../../../lib/text/catalogue.ts';

export const en = {
  queues: 'Queues',
  listCaption: 'Queues by name',
  noQueues: 'There are no queues',
  noQueuesHint: 'None is configured and none has a job.',
  queue: 'Queue',
  state: 'State',
  depth: 'Depth',
  depthOf: (parts: string) => `Jobs by status: ${parts}`,
  waiting: 'Waiting',
  running: 'Running',
  dead: 'Dead',
  lag: 'Lag',
  throughput: 'Completed, 30 min',
  throughputOf: (count: number, peak: number) =>
    `${formatCount(count)} completed in 30 minutes, at most ${formatCount(peak)} in one minute`,
  notKept: 'not kept',
  partial: 'Only the newest 25 000 jobs are counted as completed: there were more.',
  rate: 'Rate limit',
  rateOf: (count: number, seconds: string) => `${formatCount(count)} per ${seconds}`,
  runningOf: (running: string, limit: number) => `${running} of ${formatCount(limit)}`,
  noLimit: '–',
  paused: (by: string | null, reason: string | null) =>
    `Paused${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`,
  targetDown: (reason: string) => `Target does not answer: ${reason}`,
  byPush: 'Pushed to a target',
  byWorkers: 'Claimed by workers',
  action: 'Action',
  pause: 'Pause…',
  resume: 'Resume…',
  pauseTitle: (queue: string) => `Pause ${queue}`,
  resumeTitle: (queue: string) => `Resume ${queue}`,
  pauseConsequence:
    'No worker starts another job of this queue. Running jobs finish; waiting jobs keep their places.',
  resumeConsequence: 'Workers start its jobs again.',
  reason: 'Reason',
  reasonHint: 'Shown beside the queue, for those who wonder why nothing runs.',
  pausedToast: (queue: string) => `Paused ${queue}.`,
  resumedToast: (queue: string) => `Resumed ${queue}.`,
} as const satisfies Texts;
