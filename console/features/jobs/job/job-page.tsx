import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { findNeighbours } from '../../../lib/kept-list.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { shortId, shownStatus } from '../job-words.ts';
import { useJob, type ShownJob } from '../use-job.ts';
import { JobActions } from './job-actions.tsx';
import { JobAttempts } from './job-attempts.tsx';
import { JobFacts } from './job-facts.tsx';
import { JobHistory } from './job-history.tsx';
import { JobState } from './job-state.tsx';
import { JobValue } from './job-value.tsx';
import { jobTexts } from './texts/job-texts.ts';

const tabs = ['attempts', 'payload', 'result', 'history'] as const;
type Tab = (typeof tabs)[number];

/** One job: where it stands, why it failed, what is in it, what people did, and what can be done. */
export function JobPage() {
  const t = useText(jobTexts);
  const { id = '' } = useParams({ strict: false });
  const { tab: asked } = useSearch({ strict: false });
  const tab: Tab = tabs.find((one) => one === asked) ?? 'attempts';
  const navigate = useNavigate();
  const handle = useJob(id);
  const { data } = handle.query;
  const open = (to: Tab) => (): void =>
    void navigate({ to: `/jobs/list/${id}`, search: { tab: to }, replace: true });
  const neighbours = findNeighbours('jobs', id);
  const go = (to: string | null | undefined) => (): void => {
    if (to != null) void navigate({ to: `/jobs/list/${to}`, search: { tab } });
  };
  usePageKeys({
    1: open('attempts'),
    2: open('payload'),
    3: open('result'),
    4: open('history'),
    'Shift+J': go(neighbours?.next),
    'Shift+K': go(neighbours?.previous),
  });
  return (
    <Page
      title={t.jobOf(shortId(id))}
      facts={
        <>
          {data === undefined ? null : (
            <StatusBadge
              status={shownStatus(data.job)}
              isFilled
              detail={`${data.job.retry_count}/${data.job.max_retries}`}
            />
          )}
          <CopyButton what={t.id} text={id} />
          {neighbours === null ? null : (
            <LinkButton to="/jobs/list" search={neighbours.filter === '' ? {} : { q: neighbours.filter }}>
              {t.placeOf(formatCount(neighbours.place), formatCount(neighbours.count))}
            </LinkButton>
          )}
        </>
      }
      actions={data === undefined ? undefined : <JobActions job={data.job} handle={handle} />}
    >
      <LoadedPanel
        loaded={loadedOf(handle.query, () => null)}
        onRetry={() => void handle.readAgain()}
        renderEmpty={() => null}
      >
        {(shown) => <Parts id={id} tab={tab} shown={shown} />}
      </LoadedPanel>
    </Page>
  );
}

function Parts({ id, tab, shown }: Readonly<{ id: string; tab: Tab; shown: ShownJob }>) {
  const t = useText(jobTexts);
  const { attempts, actions } = shown.job;
  const counts = { attempts: attempts.length, payload: null, result: null, history: actions.length };
  return (
    <>
      <JobState job={shown.job} />
      <JobFacts job={shown.job} />
      <TabLinks
        label={t.parts}
        tabs={tabs.map((one, i) => ({
          to: `/jobs/list/${id}`,
          search: { tab: one },
          label: t[one],
          count: counts[one],
          hint: String(i + 1),
          isCurrent: tab === one,
        }))}
      />
      <Part tab={tab} shown={shown} />
    </>
  );
}

function Part({ tab, shown: { job, texts } }: Readonly<{ tab: Tab; shown: ShownJob }>) {
  const t = useText(jobTexts);
  switch (tab) {
    case 'attempts':
      return <JobAttempts job={job} />;
    case 'payload':
      return (
        <JobValue
          title={t.payload}
          text={texts.payload}
          missing={job.payload_omitted === true ? t.omitted : t.noPayload}
        />
      );
    case 'result':
      return (
        <>
          <JobValue title={t.result} text={texts.result} missing={t.noResult} />
          {texts.progress === null ? null : <JobValue title={t.progress} text={texts.progress} missing="" />}
        </>
      );
    case 'history':
      return <JobHistory job={job} />;
  }
}
