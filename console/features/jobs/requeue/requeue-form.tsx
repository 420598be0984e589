import { Link } from '@tanstack/react-router';
import { useState, type SubmitEvent } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Field } from '../../../components/form/form-parts.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { FailedState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { RequeuePreview } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { shortId } from '../job-words.ts';
import styles from './requeue.module.css';
import { requeueTexts } from './texts/requeue-texts.ts';
import { countOf, type RequeueRun } from './use-requeue.ts';

type Props = Readonly<{
  preview: RequeuePreview;
  run: RequeueRun | null;
  onStart: (most: number | null, reason: string) => void;
  onStop: () => void;
}>;

/** The reason and the button that says how many; then how far it is, and what became of it. */
export function RequeueForm({ preview, run, onStart, onStop }: Props) {
  const t = useText(requeueTexts);
  const may = useMay('jobs:jobs:requeue');
  const [reason, setReason] = useState('');
  const [isTried, setTried] = useState(false);
  const count = countOf(preview);
  const shown = count === null ? t.atLeast(preview.matched) : formatCount(count);
  const submit = (): void => {
    setTried(true);
    if (may.isAllowed && run === null && reason.trim() !== '' && count !== 0) onStart(count, reason);
  };
  usePageKeys({ '$mod+Enter': submit });
  if (run !== null) return <Outcome run={run} all={shown} onStop={onStop} />;
  return (
    <form
      className={styles['plan']}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        submit();
      }}
    >
      <Field
        label={t.reason}
        hint={t.reasonHint}
        isLong
        value={reason}
        problem={isTried && reason.trim() === '' ? t.reasonMissing : undefined}
        onChange={setReason}
      />
      <div className={styles['buttons']}>
        <Button
          type="submit"
          kind="primary"
          keys="Control+Enter"
          disabledReason={may.reason ?? (count === 0 ? t.keyTaken : undefined)}
        >
          {count === 1 ? t.requeueOne : t.requeueCount(shown)}
        </Button>
      </div>
    </form>
  );
}

function Outcome({ run, all, onStop }: Readonly<{ run: RequeueRun; all: string; onStop: () => void }>) {
  const t = useText(requeueTexts);
  const skipped = run.last?.skipped_jobs ?? [];
  if (run.state === 'running')
    return (
      <div className={styles['buttons']}>
        <span role="status">{t.running(run.requeued, all)}</span>
        <Button onPress={onStop}>{t.stop}</Button>
      </div>
    );
  return (
    <>
      <p role="status">
        <strong>{t.done(run.requeued)}</strong>{' '}
        {(run.last?.skipped ?? 0) > 0 ? t.skipped(run.last?.skipped ?? 0) : null}{' '}
        {run.state === 'stopped' ? t.stopped : null}
      </p>
      {run.error === null ? null : <FailedState error={run.error} onRetry={() => location.reload()} />}
      {skipped.length === 0 ? null : <Skipped jobs={skipped} />}
      <p className={styles['buttons']}>
        <LinkButton to="/jobs/list">{t.toList}</LinkButton>
      </p>
    </>
  );
}

function Skipped({ jobs }: Readonly<{ jobs: NonNullable<RequeueRun['last']>['skipped_jobs'] }>) {
  const t = useText(requeueTexts);
  const link = (id: string) => (
    <Link to="/jobs/list/$id" params={{ id }}>
      {shortId(id)}
    </Link>
  );
  return (
    <table className={styles['table']}>
      <thead>
        <tr>
          <th scope="col">{t.job}</th>
          <th scope="col">{t.why}</th>
          <th scope="col">{t.holder}</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.job_id}>
            <td>{link(job.job_id)}</td>
            <td>{job.reason === 'busy' ? t.busy : t.keyTaken}</td>
            <td>{job.holder_job_id === null ? '–' : link(job.holder_job_id)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
