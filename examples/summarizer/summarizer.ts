import { sleep as wait } from '../../src/kernel/clock.ts';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import { runNewsroom } from './newsroom.ts';
import { createRedriveClient } from './redrive-client.ts';
import { startSummaryService, type SummaryService, type SummaryServiceOptions } from './summary-service.ts';

export type Summarizer = Readonly<{
  url: string;
  /** What belongs under `jobs.queues`, so that Redrive pushes to it. */
  queues: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** What belongs under `jobs.cron`. */
  schedules: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Runs the newsroom; resolves when the signal has ended it. The summariser still answers. */
  run(options: SummarizerOptions): Promise<void>;
  close(): Promise<void>;
}>;

export type SummarizerOptions = Readonly<{
  /** Of the running system. */
  redriveUrl: string;
  signal: AbortSignal;
  /** Runs with the same seed write the same articles. */
  seed: string;
  /** Told once, of a job that needs attention. */
  onDead: (jobId: string) => void;
  /** Told once, when long reads can be summarised, too. */
  onLearned: () => void;
  /** Waits, but not beyond the signal. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}>;

const queue = 'summarize';
export const learnsAfterMs = 180_000;

/**
 * A newsroom and its summariser, who has the disease that jobs were made for: for some articles it never answers.
 *
 * - no answer within the timeout: tried again, and a dead letter after three times; the others are not slowed;
 * - 500: tried again after a moment;
 * - 404 for an article that was withdrawn: dead at once, for it would be no better the next time;
 * - 429 when a whole edition comes at once: waits at no cost, and the queue goes more slowly for a while.
 *
 * After some minutes it can do long articles: then the dead ones are worth a new try.
 */
export async function openSummarizer(options: SummaryServiceOptions = {}): Promise<Summarizer> {
  const service = await startSummaryService(options);
  return {
    url: service.url,
    queues: {
      [queue]: {
        max_retries: 3,
        timeout_ms: 3000,
        concurrency: 4,
        backoff: { initial_ms: 1000, max_ms: 10_000 },
        target: { type: 'http', url: service.url },
      },
      digest: { max_retries: 3, timeout_ms: 3000, target: { type: 'http', url: service.digestUrl } },
    },
    schedules: { 'minute-digest': { schedule: '* * * * *', queue: 'digest' } },
    run: (summarizing) => runSummarizing(service, summarizing),
    close: service.close,
  };
}

async function runSummarizing(service: SummaryService, options: SummarizerOptions): Promise<void> {
  const { redriveUrl, seed, onDead, onLearned, sleep = wait } = options;
  // Whichever part fails stops the other, and its error is what the run ends with.
  const failing = new AbortController();
  const signal = AbortSignal.any([options.signal, failing.signal]);
  const learn = async (): Promise<void> => {
    await sleep(learnsAfterMs, signal);
    if (signal.aborted) return;
    service.learnLongReads();
    onLearned();
  };
  const redrive = createRedriveClient(redriveUrl, queue, signal);
  const parts = [runNewsroom({ redrive, chance: chanceFrom(seed), signal, sleep, onDead }), learn()];
  try {
    await Promise.all(parts);
  } finally {
    failing.abort();
    await Promise.allSettled(parts);
  }
}
