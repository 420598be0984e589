import { useParams } from '@tanstack/react-router';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { RedriveActions } from './redrive-actions.tsx';
import { RedriveOutcomes } from './redrive-outcomes.tsx';
import { RedrivePlan } from './redrive-plan.tsx';
import { RedriveProgress } from './redrive-progress.tsx';
import { RedriveReceipt } from './redrive-receipt.tsx';
import { sentenceOf } from './redrive-words.ts';
import { SelectionText } from './selection-text.tsx';
import styles from './redrives.module.css';
import { StoppedPanel } from './stopped-panel.tsx';
import { redrivesTexts } from './texts/redrives-texts.ts';
import { useRedrive, type RedriveHandle } from './use-redrive.ts';

const shortId = 8;
/** In the other states the reason only repeats who started it. */
const saysWhy: ReadonlySet<Redrive['state']> = new Set([
  'paused',
  'stopped',
  'cancelled',
  'failed',
  'expired',
]);

/** One redrive from its plan to its receipt. */
export function RedrivePage() {
  const t = useText(redrivesTexts);
  const { id = '' } = useParams({ strict: false });
  const handle = useRedrive(id);
  const { query, refetch } = handle;
  const { data: redrive } = query;
  return (
    <Page
      title={t.redriveOf(id.slice(0, shortId))}
      facts={
        redrive === undefined ? undefined : (
          <>
            <StatusBadge status={redrive.state} isFilled />
            <CopyButton what={t.copyLink} text={() => location.href} />
          </>
        )
      }
      actions={redrive === undefined ? undefined : <RedriveActions redrive={redrive} handle={handle} />}
    >
      <LoadedPanel loaded={loadedOf(query, () => null)} onRetry={refetch} renderEmpty={() => null}>
        {(shown) => <RedriveParts redrive={shown} handle={handle} />}
      </LoadedPanel>
    </Page>
  );
}

function RedriveParts({ redrive, handle }: Readonly<{ redrive: Redrive; handle: RedriveHandle }>) {
  const { started_at: startedAt, counts } = redrive;
  const hasPlan = redrive.frozen_at !== null;
  return (
    <>
      <Summary redrive={redrive} />
      {redrive.state === 'stopped' ? <StoppedPanel redrive={redrive} handle={handle} /> : null}
      {startedAt === null ? null : <RedriveProgress redrive={redrive} handle={handle} />}
      {redrive.receipt === null ? null : <RedriveReceipt redrive={redrive} />}
      {hasPlan ? <RedrivePlan redrive={redrive} /> : null}
      {counts.selected > 0 ? <RedriveOutcomes redrive={redrive} /> : null}
    </>
  );
}

function Summary({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const { filter, reason, actor, policy, waiting_for: waitingFor, state_reason: stateReason } = redrive;
  return (
    <>
      <p className={styles['sentence']} role="status">
        {sentenceOf(redrive, t)}
        {stateReason === null || !saysWhy.has(redrive.state) ? null : <> ({stateReason})</>}
        {waitingFor === null ? null : <> {t.waitsFor(waitingFor)}</>}
      </p>
      <Definitions
        items={[
          { term: t.what, value: t[redrive.kind] },
          { term: t.why, value: reason },
          { term: t.actor, value: actor },
          { term: t.policy, value: policy },
          { term: t.approvedBy, value: redrive.approval?.actor ?? null },
          {
            term: t.selection,
            value: <SelectionText filter={filter} />,
          },
          { term: t.created, value: <Time at={redrive.created_at} /> },
          { term: t.started, value: redrive.started_at === null ? null : <Time at={redrive.started_at} /> },
          {
            term: t.finished,
            value: redrive.finished_at === null ? null : <Time at={redrive.finished_at} />,
          },
        ]}
      />
    </>
  );
}
