import { useQuery } from '@tanstack/react-query';
import { useContext, useSyncExternalStore } from 'react';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { formatDuration } from '../../../lib/times.ts';
import { describeAccounting } from './describe-accounting.ts';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** What the server knows about an empty inbox: when something failed last, and that everything is being read. */
export function CalmFacts() {
  return (
    <>
      <LastFailure />
      <Accounting />
    </>
  );
}

function LastFailure() {
  const t = useText(inboxTexts);
  const api = useApi();
  const [{ language }] = usePreferences();
  const clock = useContext(ClockContext);
  const may = useMay('dlq:messages:view');
  const { data, error, refetch } = useQuery({
    queryKey: ['inbox', 'last-failure'],
    queryFn: ({ signal }) =>
      api.get<Operations['listMessages']['answer']>('/api/v1/dlq/messages?page_size=1', signal),
    enabled: may.isAllowed,
  });
  useLiveReading({ slices: may.isAllowed ? ['dlq'] : [], read: () => refetch() });
  const at = data?.messages[0]?.created_at;
  const text = useSyncExternalStore(clock.subscribe, () =>
    at === undefined ? t.noFailure : t.lastFailure(formatDuration(clock.now() - Date.parse(at), language)),
  );
  if (error !== null) return <p role="alert">{t.lastFailureUnknown(error.message)}</p>;
  return data === undefined ? null : <p>{text}</p>;
}

const everyMs = 30_000;

function Accounting() {
  const t = useText(inboxTexts);
  const api = useApi();
  const may = useMay('dlq:sources:view');
  const { data, error } = useQuery({
    queryKey: ['inbox', 'accounting'],
    queryFn: ({ signal }) => api.get<Operations['getAccounting']['answer']>('/api/v1/dlq/accounting', signal),
    enabled: may.isAllowed,
    refetchInterval: everyMs,
  });
  if (error !== null) return <p role="alert">{t.accountingUnknown(error.message)}</p>;
  return data === undefined ? null : <p>{describeAccounting(data, t)}</p>;
}
