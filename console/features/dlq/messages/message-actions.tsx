import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import type { Message, Operations } from '../../../lib/server-shapes.ts';
import styles from './messages.module.css';
import { missingParts } from './message-words.ts';
import { messagesTexts } from './texts/messages-texts.ts';
import { messagePath, type MessageHandle } from './use-message.ts';

type Retried = Operations['retryMessage']['answer'];
type Props = Readonly<{ message: Message; handle: MessageHandle }>;

/** What can be done with one message. What its status does not allow stays visible, with the reason. */
export function MessageActions({ message, handle }: Props) {
  const t = useText(messagesTexts);
  const navigate = useNavigate();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const retry = useRetry(message, handle);
  const edit = useEditReason(message);
  const decisions = useDecisions(message, handle);
  const toEdit = (): void => void navigate({ to: `/dlq/messages/${message.id}/edit` });
  usePageKeys({
    r: retry.reason === undefined ? () => void retry.run() : undefined,
    e: edit === undefined ? toEdit : undefined,
  });
  return (
    <>
      <Button
        kind="primary"
        keys="r"
        isBusy={retry.isBusy}
        disabledReason={retry.reason}
        onPress={() => void retry.run()}
      >
        {message.unroutable ? t.retry : t.retryTo(message.original_topic)}
      </Button>
      <Button keys="e" disabledReason={edit} onPress={toEdit}>
        {t.edit}
      </Button>
      {decisions.map(({ label, reason, isDangerous, confirmation: asks }) => (
        <Button
          key={label}
          kind={isDangerous ? 'danger' : 'plain'}
          disabledReason={reason}
          onPress={() => setConfirmation(asks)}
        >
          {label}
        </Button>
      ))}
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

function useRetry(message: Message, handle: MessageHandle) {
  const t = useText(messagesTexts);
  const api = useApi();
  const toast = useToast();
  const may = useMay('dlq:messages:retry');
  const [isBusy, setBusy] = useState(false);
  const { status, archived, unroutable, retry_count: used, max_retries: most } = message;
  const missing = missingParts(message, t);
  const reason =
    may.reason ??
    (archived
      ? t.isArchived
      : unroutable
        ? t.routeFirst
        : status !== 'PENDING'
          ? t.onlyPending(status)
          : used >= most
            ? t.usedUp
            : missing.length > 0
              ? t.removedAtIngest(missing)
              : undefined);
  const run = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    try {
      const { value } = await api.send<Retried>('POST', `${messagePath(message.id)}/retry`);
      toast({
        text: value.published ? t.retried(message.original_topic) : t.notSent,
        isFailure: !value.published,
      });
    } catch (error) {
      toast({ text: messageOf(error), isFailure: true });
    } finally {
      setBusy(false);
      await handle.readAgain();
    }
  };
  return { reason, isBusy, run };
}

function useEditReason({ archived, status, masked }: Message): string | undefined {
  const t = useText(messagesTexts);
  const may = useMay('dlq:messages:edit');
  const mayRead = useMay('dlq:payloads:view');
  if (archived) return t.isArchived;
  if (status === 'RETRYING' || status === 'RESOLVED') return t.notEditable(status);
  return may.reason ?? mayRead.reason ?? (masked === true ? t.isMasked : undefined);
}

type Decision = Readonly<{
  label: string;
  reason: string | undefined;
  isDangerous: boolean;
  confirmation: Confirmation;
}>;

/** Reopen, give up, route, delete: each with a reason, each refused by the server if the status has changed. */
function useDecisions(message: Message, handle: MessageHandle): readonly Decision[] {
  const t = useText(messagesTexts);
  const api = useApi();
  const navigate = useNavigate();
  const path = messagePath(message.id);
  const [reopen, dead, remove, route] = [
    useMay('dlq:messages:reopen'),
    useMay('dlq:messages:mark-dead'),
    useMay('dlq:messages:delete'),
    useMay('dlq:messages:route'),
  ];
  const { status, archived, unroutable } = message;
  const reason = reasonField(t.reason, t.reasonHint);
  const post =
    (verb: string) =>
    async (values: Readonly<Record<string, string>>): Promise<void> => {
      await api.send('POST', `${path}/${verb}`, { body: values });
      await handle.readAgain();
    };
  const decision = (
    label: string,
    why: string | undefined,
    asks: Omit<Confirmation, 'action' | 'title'>,
  ): Decision => ({
    label,
    reason: archived ? t.isArchived : why,
    isDangerous: asks.isDangerous === true,
    confirmation: { title: verbOf(label), action: verbOf(label), ...asks },
  });
  return [
    ...(unroutable
      ? [
          decision(t.route, route.reason, {
            consequence: t.routeConsequence,
            fields: [
              { name: 'target_topic', label: t.topic, kind: 'line', isRequired: true, maxLength: 249 },
              reason,
            ],
            perform: post('route'),
          }),
        ]
      : []),
    decision(t.reopen, reopen.reason ?? (status === 'RETRYING' ? t.notNow(status) : undefined), {
      consequence: t.reopenConsequence,
      fields: [reason],
      perform: post('reopen'),
    }),
    decision(t.markDead, dead.reason ?? (status === 'PENDING' ? undefined : t.notNow(status)), {
      consequence: t.deadConsequence,
      fields: [reason],
      perform: post('dead'),
    }),
    decision(t.remove, remove.reason, {
      consequence: <span className={styles['consequence']}>{t.removeConsequence}</span>,
      isDangerous: true,
      perform: async () => {
        await api.send('DELETE', path);
        await navigate({ to: '/dlq/messages', search: {} });
      },
    }),
  ];
}

/** Without the dots, which say that a question follows. */
function verbOf(label: string): string {
  return label.replace('…', '');
}
