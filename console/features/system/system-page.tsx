import { Page } from '../../components/navigation/page.tsx';
import { PanelBoundary } from '../../components/navigation/panel-boundary.tsx';
import { useApi } from '../../components/session/api-context.ts';
import { useText } from '../../components/text/use-text.ts';
import { AccountingPanel } from './accounting-panel.tsx';
import { ConfigPanel } from './config-panel.tsx';
import { IngestPanel } from './ingest-panel.tsx';
import { NotifiersPanel } from './notifiers-panel.tsx';
import { ReadinessPanel } from './readiness-panel.tsx';
import { ReplicasPanel } from './replicas-panel.tsx';
import styles from './system.module.css';
import { systemTexts } from './texts/system-texts.ts';

/** Whether the system itself works: each part is read on its own, and says so if it cannot be read. */
export function SystemPage() {
  const t = useText(systemTexts);
  const api = useApi();
  const panels = [
    [t.readiness, <ReadinessPanel key="readiness" />],
    [t.ingest, <IngestPanel key="ingest" />],
    [t.accounting, <AccountingPanel key="accounting" />],
    [t.notifiers, <NotifiersPanel key="notifiers" />],
    [t.replicas, <ReplicasPanel key="replicas" />],
    [t.configuration, <ConfigPanel key="configuration" />],
  ] as const;
  return (
    <Page title={t.area} actions={<a href={api.url('/docs/')}>{t.apiPage}</a>}>
      <div className={styles['panels']}>
        {panels.map(([name, panel]) => (
          <PanelBoundary key={name} name={name}>
            {panel}
          </PanelBoundary>
        ))}
      </div>
    </Page>
  );
}
