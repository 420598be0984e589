import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { PayloadViews } from '../../../components/payload/payload-views.tsx';
import { Revealable } from '../../../components/protection/revealable.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { findNeighbours } from '../../../lib/kept-list.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { SagaWithSteps } from '../../../lib/server-shapes.ts';
import { bytesOf, payloadText } from '../payload-of.ts';
import { SagaFacts } from '../saga-facts.tsx';
import { sagaList } from '../saga-list.ts';
import { Situation } from '../situation.tsx';
import { sagasTexts } from '../texts/sagas-texts.ts';
import { readSagaOf, sagaPath, useSaga, type ReadSaga, type SagaHandle } from '../use-saga.ts';
import { SagaStatus } from '../waiting-for.tsx';
import { AttemptPanel } from './attempt-panel.tsx';
import styles from './detail.module.css';
import { LogTable } from './log-table.tsx';
import { ActionEffects, SagaActions } from './saga-actions.tsx';
import { TimelinePicture } from './timeline-picture.tsx';
import { detailTexts } from './texts/detail-texts.ts';
import { useSagaActions } from './use-saga-actions.tsx';

/** One saga: how it stands in words, as a picture and as a table, and what can be done. */
export function SagaPage() {
  const t = useText(detailTexts);
  const all = useText(sagasTexts);
  const { id = '' } = useParams({ strict: false });
  const navigate = useNavigate();
  const handle = useSaga(id);
  const { data } = handle.query;
  const neighbours = findNeighbours(sagaList, id);
  const go = (to: string | null | undefined) => (): void => {
    if (to != null) void navigate({ to: `/sagas/${to}` });
  };
  usePageKeys({ 'Shift+J': go(neighbours?.next), 'Shift+K': go(neighbours?.previous) });
  return (
    <Page
      title={t.sagaOf(data?.saga.workflow_name ?? all.saga, id.slice(0, 8))}
      facts={
        <>
          {data === undefined ? null : <SagaStatus saga={data.saga} isFilled />}
          <CopyButton what={t.id} text={id} />
          {neighbours === null ? null : (
            <LinkButton to="/sagas" search={neighbours.filter === '' ? {} : { q: neighbours.filter }}>
              {t.placeOf(neighbours.place, neighbours.count)}
            </LinkButton>
          )}
        </>
      }
      actions={data === undefined ? undefined : <Actions read={data} handle={handle} />}
    >
      <LoadedPanel
        loaded={loadedOf(handle.query, () => null)}
        onRetry={() => void handle.readAgain()}
        renderEmpty={() => null}
      >
        {(read) => <ProtectedView read={read} handle={handle} />}
      </LoadedPanel>
    </Page>
  );
}

type ViewProps = Readonly<{ read: ReadSaga; handle: SagaHandle }>;

function Actions({ read, handle }: ViewProps) {
  return <SagaActions actions={useSagaActions(read.saga, handle)} />;
}

/** What was revealed is a copy of its moment: when the saga has changed, it is covered again. */
function ProtectedView({ read, handle }: ViewProps) {
  const { saga, log } = read;
  const readAt = handle.query.dataUpdatedAt;
  return (
    <Revealable<SagaWithSteps>
      key={`${saga.saga_id} ${saga.updated_at}`}
      isMasked={[saga, ...log].some(({ masked }) => masked === true)}
      path={`${sagaPath(saga.saga_id)}/reveal`}
      permission="saga:payloads:view"
    >
      {(revealed, text) => (
        <SagaView
          read={revealed === null || text === null ? read : readSagaOf(revealed, text)}
          handle={handle}
          readAt={readAt}
        />
      )}
    </Revealable>
  );
}

function SagaView({ read, handle, readAt }: ViewProps & Readonly<{ readAt: number }>) {
  const { saga, log, text } = read;
  const actions = useSagaActions(saga, handle);
  const navigate = useNavigate();
  const { attempt = '' } = useSearch({ strict: false });
  // The newest says most about how the saga stands.
  const selected = log.find(({ id }) => id === attempt) ?? log.at(-1);
  const select = (id: string): void =>
    void navigate({ to: '.', search: { attempt: id }, replace: true, resetScroll: false });
  const shared = { log, selected: selected?.id ?? null, onSelect: select };
  return (
    <>
      <Situation saga={saga} log={log} />
      <SagaFacts saga={saga} />
      <ActionEffects actions={actions} />
      <div className={styles['columns']}>
        <div className={styles['main']}>
          <TimelinePicture steps={saga.steps} readAt={readAt} {...shared} />
          <LogTable {...shared} />
        </div>
        <AttemptPanel saga={saga} row={selected} text={text} />
      </div>
      <SagaPayload read={read} />
    </>
  );
}

function SagaPayload({ read }: Readonly<{ read: ReadSaga }>) {
  const t = useText(detailTexts);
  const { saga, text } = read;
  const payload = useMemo(() => bytesOf(payloadText(text)), [text]);
  if (saga.payload_omitted !== true && payload === null) return null;
  return (
    <section aria-labelledby="payload" className={styles['payload']}>
      <h2 id="payload">{t.payload}</h2>
      {payload === null ? <p>{t.payloadOmitted}</p> : <PayloadViews value={payload} />}
    </section>
  );
}
