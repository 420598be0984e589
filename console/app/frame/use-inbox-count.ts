import { useQuery } from '@tanstack/react-query';
import { useLiveReading } from '../../components/live/use-live-reading.ts';
import { useApi } from '../../components/session/api-context.ts';
import { useMay } from '../../components/session/use-may.ts';
import { useText } from '../../components/text/use-text.ts';
import { inboxCountKey } from '../../lib/inbox-count-key.ts';
import { slices } from '../../lib/live/live-events.ts';
import type { Inbox } from '../../lib/server-shapes.ts';
import { appTexts } from '../texts/app-texts.ts';
import type { Figure } from './area-count.tsx';

/** The server reads all slices for it, and it is on every page. */
const everyMs = 5000;

/** Open entries of the inbox. A count without a slice that could not be read would be too small, so it is none. */
export function useInboxCount(): Figure {
  const t = useText(appTexts);
  const api = useApi();
  const may = useMay('console:inbox:view');
  const { data, error, refetch } = useQuery({
    queryKey: inboxCountKey,
    queryFn: ({ signal }) => api.get<Pick<Inbox, 'counts' | 'unavailable'>>('/api/v1/inbox?limit=1', signal),
    enabled: may.isAllowed,
  });
  useLiveReading({
    slices: may.isAllowed ? slices : [],
    read: () => refetch(),
    ignoresHold: true,
    everyMs,
  });
  if (may.reason !== undefined) return may.reason;
  if (error !== null) return `${t.unknownCount}: ${error.message}`;
  if (data === undefined) return t.unknownCount;
  const { counts, unavailable = [] } = data;
  return unavailable.length > 0 ? `${t.unknownCount}: ${unavailable.join(', ')}` : { count: counts.open };
}
