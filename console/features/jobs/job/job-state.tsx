import { useContext } from 'react';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { Time } from '../../../components/time/time.tsx';
import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { JobDetails } from '../../../lib/server-shapes.ts';
import styles from './job.module.css';
import type { en } from './texts/en.ts';
import { jobTexts } from './texts/job-texts.ts';

/** Where the job stands, as one sentence with the time that matters, and who has decided so. */
export function JobState({ job }: Readonly<{ job: JobDetails }>) {
  const t = useText(jobTexts);
  const clock = useContext(ClockContext);
  const { says, at } = stateOf(job, t, clock.now());
  const decision = job.resolution === null ? undefined : job.actions.at(-1);
  return (
    <p className={styles['state']}>
      {says} <Time at={at} /> {decision === undefined ? null : t.by(decision.actor, decision.reason)}
    </p>
  );
}

type Texts = TextsLike<typeof en>;
type State = Readonly<{ says: string; at: string | null }>;

export function stateOf(job: JobDetails, t: Texts, nowMs: number): State {
  const { status, resolution, retry_count: failures, max_retries: most } = job;
  switch (status) {
    case 'pending': {
      const isLater = job.run_at !== null && Date.parse(job.run_at) > nowMs;
      return { says: isLater ? t.later : t.pending, at: job.run_at };
    }
    case 'running':
      return {
        says: t.running(failures + 1, most, job.lease?.owner ?? t.unknownWorker),
        at: job.started_at,
      };
    case 'failed':
      return { says: t.failed(failures, most), at: job.run_at };
    case 'completed':
      return { says: t.completed(failures), at: job.completed_at };
    case 'dead_letter':
      return {
        says:
          resolution === 'cancelled'
            ? t.cancelled
            : resolution === 'discarded'
              ? t.discarded
              : t.dead(failures, most),
        at: job.completed_at,
      };
  }
}
