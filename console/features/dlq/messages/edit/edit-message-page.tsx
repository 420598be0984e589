import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { Page } from '../../../../components/navigation/page.tsx';
import { useApi } from '../../../../components/session/api-context.ts';
import { useMay } from '../../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../../components/states/loaded-panel.tsx';
import { useText } from '../../../../components/text/use-text.ts';
import { loadedOf } from '../../../../lib/loaded.ts';
import { messagesTexts } from '../texts/messages-texts.ts';
import { messagePath, useMessage } from '../use-message.ts';
import { isProtected } from '../use-payload.ts';
import type { Version } from './draft.ts';
import { EditForm } from './edit-form.tsx';
import { editTexts } from './texts/edit-texts.ts';

/** A new version of a message: the original stays, and a retry publishes the newest. */
export function EditMessagePage() {
  const t = useText(editTexts);
  const messages = useText(messagesTexts);
  const { id = '' } = useParams({ strict: false });
  const handle = useMessage(id);
  const may = useMay('dlq:payloads:view');
  const api = useApi();
  const newest = handle.query.data?.version;
  const version = useQuery({
    queryKey: ['dlq', 'version', id, newest],
    queryFn: ({ signal }) => api.get<Version>(`${messagePath(id)}/versions/${newest ?? 0}`, signal),
    enabled: newest !== undefined && may.isAllowed,
    staleTime: Infinity,
    // The draft stays on screen while a version that somebody else made is loaded.
    placeholderData: (last) => last,
  });
  const query = handle.query.error === null ? version : { ...version, error: handle.query.error };
  return (
    <Page title={t.editOf(id.slice(0, 8))}>
      {!may.isAllowed ? (
        <p>{may.reason}</p>
      ) : isProtected(query.error) ? (
        <p role="alert">{messages.isMasked}</p>
      ) : (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void handle.readAgain()}
          renderEmpty={() => null}
        >
          {(shown) => <EditForm id={id} version={shown} handle={handle} />}
        </LoadedPanel>
      )}
    </Page>
  );
}
