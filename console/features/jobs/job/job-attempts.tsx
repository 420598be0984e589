import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { Stack } from '../../../components/stack/stack.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { JobDetails } from '../../../lib/server-shapes.ts';
import styles from './job.module.css';
import { jobTexts } from './texts/job-texts.ts';

type Attempt = JobDetails['attempts'][number];

/** Failed attempts, the newest first. `limit`: how many are shown at most. */
export function JobAttempts({ job, limit = Infinity }: Readonly<{ job: JobDetails; limit?: number }>) {
  const t = useText(jobTexts);
  const shown = job.attempts.toReversed().slice(0, limit);
  return (
    <section className={styles['panel']} aria-labelledby="attempts">
      <h2 id="attempts">{t.attempts}</h2>
      {shown.length === 0 ? (
        <p>{t.noAttempts}</p>
      ) : (
        <ol className={styles['attempts']}>
          {shown.map((attempt, i) => (
            <OneAttempt key={`${attempt.epoch} ${i}`} attempt={attempt} />
          ))}
        </ol>
      )}
    </section>
  );
}

function OneAttempt({ attempt }: Readonly<{ attempt: Attempt }>) {
  const t = useText(jobTexts);
  const { error, error_class: name, stack, worker } = attempt;
  return (
    <li className={styles['attempt']}>
      <h3>
        {t.attempt(attempt.retry_count)}
        <span>
          <Time at={attempt.ended_at} />
        </span>
        <span>{worker ?? t.lostWorker}</span>
        <span>
          {t.becomes} <StatusBadge status={attempt.status_to} />
        </span>
      </h3>
      {name === null ? null : (
        <code className={styles['class']}>
          <MaskedText text={name} />
        </code>
      )}
      <pre className={styles['text']}>
        <MaskedText text={error} />
      </pre>
      {stack === null || stack === '' ? null : <Stack text={stack} />}
    </li>
  );
}
