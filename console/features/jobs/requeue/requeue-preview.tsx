import { Link } from '@tanstack/react-router';
import { FormPart } from '../../../components/form/form-parts.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { RequeuePreview } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { shortId } from '../job-words.ts';
import styles from './requeue.module.css';
import { requeueTexts } from './texts/requeue-texts.ts';
import { countOf } from './use-requeue.ts';

/** What would be requeued, what would be skipped and why, and the oldest of the jobs. */
export function RequeuePreviewPanel({ preview }: Readonly<{ preview: RequeuePreview }>) {
  const t = useText(requeueTexts);
  const { matched, dedupe_key_taken: taken, sample } = preview;
  const count = countOf(preview);
  return (
    <FormPart legend={t.preview}>
      <dl className={styles['figures']}>
        <div>
          <dt>{t.goes}</dt>
          <dd>{count === null ? t.atLeast(matched - taken) : formatCount(count)}</dd>
        </div>
        <div>
          <dt>
            {t.excluded}
            {taken === 0 ? '' : `: ${t.keyTaken}`}
          </dt>
          <dd>{formatCount(taken)}</dd>
        </div>
      </dl>
      <h2>{t.sample}</h2>
      <table className={styles['table']}>
        <thead>
          <tr>
            <th scope="col">{t.job}</th>
            <th scope="col">{t.queue}</th>
            <th scope="col">{t.error}</th>
            <th scope="col">{t.died}</th>
          </tr>
        </thead>
        <tbody>
          {sample.map((job) => (
            <tr key={job.job_id}>
              <td>
                <Link to="/jobs/list/$id" params={{ id: job.job_id }}>
                  {shortId(job.job_id)}
                </Link>
              </td>
              <td>{job.queue}</td>
              <td>{job.error === null ? '–' : <MaskedText text={job.error} />}</td>
              <td>
                <Time at={job.completed_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className={styles['hint']}>
        {t.consequence} {t.frozen}
      </p>
    </FormPart>
  );
}
