import { showFacts, showText } from '../output/facts.ts';
import { revealCommand } from '../slice/reveal-command.ts';
import { messageId } from './message.ts';
import { showRaw, timeoutMs, version, type Raw } from './raw.ts';

type Revealed = Raw & Readonly<{ error_message: string; error_stack: string | null }>;

export const reveal = revealCommand<Revealed>({
  description: 'show the record of a message with what is masked elsewhere, and its error',
  route: 'POST /api/v1/dlq/messages/{id}/reveal',
  inputs: [messageId, version],
  examples: ["redrive dlq reveal 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'ticket 4711'"],
  timeoutMs,
  print(record, session) {
    showFacts(session.print, [
      ['id', record.id],
      ['version', String(record.version)],
      ['error', record.error_message],
    ]);
    if (record.error_stack !== null) showText(session.print, 'stack', record.error_stack);
    showRaw(session, record);
  },
});
