import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useApi } from '../../components/session/api-context.ts';
import type { Api } from '../../lib/api/api-client.ts';
import { decodeText } from '../../lib/bytes/decode-text.ts';
import { memberText } from '../../lib/exact-json/member-text.ts';
import type { JobDetails } from '../../lib/server-shapes.ts';

const busyMs = 1000;
const restingMs = 5000;
/** The server omits larger values. */
const mostBytes = 64 * 1024 * 1024;

/** A job, and its values as the server wrote them: parsed numbers would lose digits. */
export type ShownJob = Readonly<{
  job: JobDetails;
  texts: Readonly<Record<'payload' | 'result' | 'progress', string | null>>;
}>;

/** One job, read again while somebody may change it. */
export function useJob(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ['jobs', 'job', id],
    queryFn: ({ signal }) => readJob(api, id, signal),
    refetchInterval: ({ state: { data } }) => (data?.job.status === 'running' ? busyMs : restingMs),
  });
  return {
    query: { data: query.data, error: query.error, isFetching: query.isFetching },
    /** After an action: the job and all lists are old. */
    readAgain: async (): Promise<void> => {
      for (const list of ['list', 'dead', 'facets', 'queues'])
        void queries.invalidateQueries({ queryKey: ['jobs', list] });
      await query.refetch();
    },
  };
}

export type JobHandle = ReturnType<typeof useJob>;

export function jobPath(id: string): string {
  return `/api/v1/jobs/${encodeURIComponent(id)}`;
}

async function readJob(api: Api, id: string, signal: AbortSignal): Promise<ShownJob> {
  const { bytes } = await api.readBytes(jobPath(id), mostBytes, signal);
  const { text } = decodeText(bytes, false);
  const textOf = (name: string): string | null => {
    const found = memberText(text, name);
    return found === 'null' ? null : found;
  };
  return {
    job: JSON.parse(text) as JobDetails,
    texts: { payload: textOf('payload'), result: textOf('result'), progress: textOf('progress') },
  };
}
