import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { Revealable } from '../../../components/protection/revealable.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { findNeighbours } from '../../../lib/kept-list.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Message } from '../../../lib/server-shapes.ts';
import { MessageActions } from './message-actions.tsx';
import { MessageError } from './message-error.tsx';
import { MessageFacts } from './message-facts.tsx';
import { MessageHeaders } from './message-headers.tsx';
import { MessageHistory } from './message-history.tsx';
import { MessagePayload } from './message-payload.tsx';
import { MessageRelated } from './message-related.tsx';
import { messagesTexts } from './texts/messages-texts.ts';
import { messagePath, useMessage } from './use-message.ts';
import type { RevealedMessage, RevealedProps } from './use-payload.ts';

const tabs = ['error', 'payload', 'headers', 'history', 'related'] as const;
type Tab = (typeof tabs)[number];

/** One dead letter: why it failed, what is in it, what happened to it, and what can be done. */
export function MessagePage() {
  const t = useText(messagesTexts);
  const { id = '' } = useParams({ strict: false });
  const { tab: asked } = useSearch({ strict: false });
  const tab: Tab = tabs.find((one) => one === asked) ?? 'error';
  const navigate = useNavigate();
  const handle = useMessage(id);
  const { data: message } = handle.query;
  const open = (to: Tab) => (): void =>
    void navigate({ to: `/dlq/messages/${id}`, search: { tab: to }, replace: true });
  const neighbours = findNeighbours('messages', id);
  const go = (to: string | null | undefined) => (): void => {
    if (to != null) void navigate({ to: `/dlq/messages/${to}`, search: { tab } });
  };
  usePageKeys({
    1: open('error'),
    2: open('payload'),
    3: open('headers'),
    4: open('history'),
    5: open('related'),
    'Shift+J': go(neighbours?.next),
    'Shift+K': go(neighbours?.previous),
  });
  return (
    <Page
      title={t.messageOf(id.slice(0, 8))}
      facts={
        <>
          {message === undefined ? null : (
            <StatusBadge
              status={message.archived ? 'archived' : message.status}
              isFilled
              detail={`${message.retry_count}/${message.max_retries}`}
            />
          )}
          <CopyButton what={t.id} text={id} />
          {neighbours === null ? null : (
            <LinkButton to="/dlq/messages" search={neighbours.filter === '' ? {} : { q: neighbours.filter }}>
              {t.placeOf(neighbours.place, neighbours.count)}
            </LinkButton>
          )}
        </>
      }
      actions={message === undefined ? undefined : <MessageActions message={message} handle={handle} />}
    >
      <LoadedPanel
        loaded={loadedOf(handle.query, () => null)}
        onRetry={() => void handle.readAgain()}
        renderEmpty={() => null}
      >
        {(shown) => <Parts tab={tab} message={shown} />}
      </LoadedPanel>
    </Page>
  );
}

/** What is protected stays revealed while one looks at the parts, until there is another version. */
function Parts({ tab, message }: Readonly<{ tab: Tab; message: Message }>) {
  const t = useText(messagesTexts);
  const { id, version, masked = false } = message;
  return (
    <Revealable<RevealedMessage>
      key={`${id} ${version}`}
      isMasked={masked}
      path={`${messagePath(id)}/reveal?version=${version}`}
      permission="dlq:payloads:view"
      note={t.bytesRefused}
    >
      {(revealed) => (
        <>
          <MessageFacts message={message} revealed={revealed} />
          <TabLinks
            label={t.parts}
            tabs={tabs.map((one, i) => ({
              to: `/dlq/messages/${id}`,
              search: { tab: one },
              label: {
                error: t.error,
                payload: t.payload,
                headers: t.headers,
                history: t.history,
                related: t.related,
              }[one],
              hint: String(i + 1),
              isCurrent: tab === one,
            }))}
          />
          <Part tab={tab} message={message} revealed={revealed} />
        </>
      )}
    </Revealable>
  );
}

function Part({ tab, ...shown }: RevealedProps & Readonly<{ tab: Tab }>) {
  switch (tab) {
    case 'error':
      return <MessageError {...shown} />;
    case 'payload':
      return <MessagePayload {...shown} />;
    case 'headers':
      return <MessageHeaders {...shown} />;
    case 'history':
      return <MessageHistory message={shown.message} />;
    case 'related':
      return <MessageRelated {...shown} />;
  }
}
