import { Link } from '@tanstack/react-router';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { JobDetails } from '../../../lib/server-shapes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { durationMs, durationText } from '../job-words.ts';
import { jobTexts } from './texts/job-texts.ts';

/** Where it belongs, and what is known of its ways. */
export function JobFacts({ job }: Readonly<{ job: JobDetails }>) {
  const t = useText(jobTexts);
  const [{ language }] = usePreferences();
  const { queue, fingerprint, lease } = job;
  const took = job.completed_at === null ? null : durationMs(job, Date.parse(job.completed_at));
  const time = (at: string | null | undefined) => (at == null ? null : <Time at={at} />);
  return (
    <Definitions
      items={[
        {
          term: t.queue,
          value: (
            <Link to="/jobs/list" search={{ q: `queue:${queue}` }}>
              {queue}
            </Link>
          ),
        },
        { term: t.key, value: job.dedupe_key === null ? null : <code>{job.dedupe_key}</code> },
        { term: t.created, value: time(job.created_at) },
        { term: t.createdBy, value: job.created_by },
        { term: t.due, value: time(job.run_at) },
        { term: t.started, value: time(job.started_at) },
        { term: t.ended, value: time(job.completed_at) },
        {
          term: t.took,
          value: took === null ? null : durationText(took, (long) => formatDuration(long, language)),
        },
        { term: t.priority, value: job.priority === 0 ? null : String(job.priority) },
        { term: t.deferrals, value: job.deferrals === 0 ? null : t.times(job.deferrals) },
        { term: t.worker, value: lease?.owner },
        { term: t.lease, value: time(lease?.until) },
        { term: t.trace, value: job.trace === null ? null : <code>{job.trace}</code> },
        {
          term: t.cause,
          value:
            fingerprint === null ? null : (
              <Link to="/jobs/list" search={{ q: `status:dead_letter fingerprint:${fingerprint}` }}>
                {t.sameError}
              </Link>
            ),
        },
      ]}
    />
  );
}
