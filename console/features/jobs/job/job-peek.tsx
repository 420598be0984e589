import { LinkButton } from '../../../components/button/link-button.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { shownStatus } from '../job-words.ts';
import { useJob } from '../use-job.ts';
import { JobAttempts } from './job-attempts.tsx';
import { JobFacts } from './job-facts.tsx';
import { JobState } from './job-state.tsx';
import { JobValue } from './job-value.tsx';
import styles from './job.module.css';
import { jobTexts } from './texts/job-texts.ts';

/** The first screen of a job, beside its list. */
export function JobPeek({ id }: Readonly<{ id: string }>) {
  const t = useText(jobTexts);
  const { query, readAgain } = useJob(id);
  return (
    <div className={styles['peek']}>
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void readAgain()}
        renderEmpty={() => null}
      >
        {({ job, texts }) => (
          <>
            <div className={styles['peekHead']}>
              <StatusBadge
                status={shownStatus(job)}
                isFilled
                detail={`${job.retry_count}/${job.max_retries}`}
              />
              <LinkButton to={`/jobs/list/${id}`}>{t.open}</LinkButton>
            </div>
            <JobState job={job} />
            <JobFacts job={job} />
            <JobAttempts job={job} limit={1} />
            <JobValue
              title={t.payload}
              text={texts.payload}
              missing={job.payload_omitted === true ? t.omitted : t.noPayload}
            />
          </>
        )}
      </LoadedPanel>
    </div>
  );
}
