import { useQuery } from '@tanstack/react-query';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useText } from '../../../components/text/use-text.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { dlqTexts } from '../texts/dlq-texts.ts';

type MessageList = Operations['listMessages']['answer'];

export function MessagesPage() {
  const api = useApi();
  const t = useText(dlqTexts);
  const { data, error } = useQuery({
    queryKey: ['dlq', 'messages'],
    queryFn: ({ signal }) => api.get<MessageList>('/api/v1/dlq/messages?page_size=100', signal),
  });
  return (
    <Page title={t.messages}>
      {error === null ? null : <p role="alert">{error.message}</p>}
      <table>
        <thead>
          <tr>
            <th>{t.status}</th>
            <th>{t.topic}</th>
            <th>{t.error}</th>
          </tr>
        </thead>
        <tbody>
          {data?.messages.map((message) => (
            <tr key={message.id}>
              <td>{message.status}</td>
              <td>{message.original_topic}</td>
              <td>{message.error_message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Page>
  );
}
