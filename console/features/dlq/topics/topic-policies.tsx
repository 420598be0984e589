import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { useToast } from '../../../components/toast/toasts.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations, RetryPolicy } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { FactsTable } from './facts-table.tsx';
import { topicsTexts } from './texts/topics-texts.ts';
import { PolicyState } from './topic-columns.tsx';
import styles from './topics.module.css';

const everyMs = 10_000;

/** What retries its messages by itself. `names` is null while it is not known which policies match. */
export function TopicPolicies({ names }: Readonly<{ names: readonly string[] | null }>) {
  const t = useText(topicsTexts);
  const id = useId();
  const api = useApi();
  const may = useMay('dlq:redrives:view');
  const query = useQuery({
    queryKey: ['dlq', 'policies'],
    queryFn: ({ signal }) =>
      api.get<Operations['listRetryPolicies']['answer']>('/api/v1/dlq/policies', signal),
    enabled: may.isAllowed,
    refetchInterval: everyMs,
  });
  if (names === null) return null;
  return (
    <section className={styles['panel']} aria-labelledby={id}>
      <h2 id={id}>{t.policies}</h2>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void query.refetch()}
          renderEmpty={() => null}
          skeletonRows={2}
        >
          {({ policies }) => <Policies policies={policies.filter(({ name }) => names.includes(name))} />}
        </LoadedPanel>
      ) : (
        <p className={styles['hint']}>{may.reason}</p>
      )}
    </section>
  );
}

function Policies({ policies }: Readonly<{ policies: readonly RetryPolicy[] }>) {
  const t = useText(topicsTexts);
  const [{ language }] = usePreferences();
  const { confirmation, setConfirmation, ask } = useCommand();
  if (policies.length === 0) return <p className={styles['hint']}>{t.noPolicies}</p>;
  return (
    <>
      <p className={styles['hint']}>{t.policiesHint}</p>
      <FactsTable
        label={t.policies}
        columns={[
          { title: t.policy },
          { title: t.state },
          { title: t.matches },
          { title: t.delay, isNumber: true },
          { title: t.attempts, isNumber: true },
          { title: t.waiting, isNumber: true },
          { title: t.lastRound },
          { title: t.action },
        ]}
        rows={policies.map((policy) => ({
          id: policy.name,
          cells: [
            policy.name,
            <State key="state" policy={policy} />,
            policy.error_classes?.join(', ') ?? t.allErrors,
            formatDuration(policy.delay_seconds * 1000, language),
            formatCount(policy.max_attempts),
            formatCount(policy.waiting),
            <LastRound key="round" policy={policy} />,
            <PauseButton key="action" policy={policy} onPress={() => ask(policy)} />,
          ],
        }))}
      />
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

function State({ policy }: Readonly<{ policy: RetryPolicy }>) {
  const t = useText(topicsTexts);
  const { state, state_actor: actor, state_reason: reason } = policy;
  return (
    <>
      <PolicyState state={state} />{' '}
      {state === 'active' || actor === null ? null : t.stateBy(actor, reason ?? '')}
    </>
  );
}

function LastRound({ policy }: Readonly<{ policy: RetryPolicy }>) {
  const { last_round_at: at, last_result: result } = policy;
  const redrive = policy.redrive_id ?? policy.last_redrive_id;
  if (redrive === null) return <>–</>;
  return (
    <>
      <Link to="/dlq/redrives/$id" params={{ id: redrive }}>
        {result ?? redrive.slice(0, 8)}
      </Link>{' '}
      <Time at={at} show="age" />
    </>
  );
}

function PauseButton({ policy, onPress }: Readonly<{ policy: RetryPolicy; onPress: () => void }>) {
  const t = useText(topicsTexts);
  const pauses = policy.state === 'active';
  const may = useMay(pauses ? 'dlq:redrives:pause' : 'dlq:redrives:start');
  return (
    <Button
      label={pauses ? t.pauseTitle(policy.name) : t.resumeTitle(policy.name)}
      disabledReason={may.reason}
      onPress={onPress}
    >
      {pauses ? t.pause : t.resume}
    </Button>
  );
}

/** Each can be undone by the other; the server wants to know why. */
function useCommand() {
  const t = useText(topicsTexts);
  const api = useApi();
  const toast = useToast();
  const queries = useQueryClient();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const ask = ({ name, state }: RetryPolicy): void => {
    const pauses = state === 'active';
    const title = pauses ? t.pauseTitle(name) : t.resumeTitle(name);
    setConfirmation({
      title,
      action: title,
      consequence: pauses ? t.pauseConsequence : t.resumeConsequence,
      fields: [reasonField(t.reason, t.reasonHint, true)],
      async perform({ reason = '' }) {
        const verb = pauses ? 'pause' : 'resume';
        await api.send('POST', `/api/v1/dlq/policies/${encodeURIComponent(name)}/${verb}`, {
          body: { reason },
        });
        toast({ text: pauses ? t.paused(name) : t.resumed(name) });
        await queries.invalidateQueries({ queryKey: ['dlq'] });
      },
    });
  };
  return { confirmation, setConfirmation, ask };
}
