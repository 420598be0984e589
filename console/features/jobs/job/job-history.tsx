import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { JobDetails } from '../../../lib/server-shapes.ts';
import styles from './job.module.css';
import { jobTexts } from './texts/job-texts.ts';

/** What people did to the job, the newest first. */
export function JobHistory({ job }: Readonly<{ job: JobDetails }>) {
  const t = useText(jobTexts);
  if (job.actions.length === 0) return <p>{t.noHistory}</p>;
  return (
    <table className={styles['table']}>
      <thead>
        <tr>
          <th scope="col">{t.when}</th>
          <th scope="col">{t.event}</th>
          <th scope="col">{t.actor}</th>
          <th scope="col">{t.becomes}</th>
          <th scope="col">{t.why}</th>
        </tr>
      </thead>
      <tbody>
        {job.actions.toReversed().map((action, i) => (
          <tr key={i}>
            <td>
              <Time at={action.at} />
            </td>
            <td>{action.action}</td>
            <td>{action.actor}</td>
            <td>
              <StatusBadge status={action.status_to} />
            </td>
            <td>{action.reason ?? '–'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
