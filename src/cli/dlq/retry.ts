import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { confirm, requireTerminal } from '../confirm.ts';
import { SilentFailure } from '../exit-code.ts';
import { apiCommand, sliceCommand } from '../slice/api-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { messageId, toneOf } from './message.ts';
import { withProgress } from '../output/progress.ts';

type Retried = Readonly<{ id: string; status: string; published: boolean }>;
type AllRetried = Readonly<{
  retried: number;
  message: string;
  failed: number;
  skipped: number;
  excluded: number;
  remaining: number;
  exclusions: readonly Readonly<{ reason: string; topic: string; count: number }>[];
}>;
type Pagination = Readonly<{ total_count: number; total_is_estimate?: true }>;

/** The server's publish timeout plus one lease for the settle. */
const retryTimeoutMs = 120_000;
/** The server answers when the last message is done, and continues if the client disconnects. */
const retryAllTimeoutMs = 6 * 3_600_000;

export const retry = apiCommand<Retried>({
  name: 'retry',
  description: 'publish a message to its original topic again',
  route: 'POST /api/v1/dlq/messages/{id}/retry',
  inputs: [messageId],
  timeoutMs: retryTimeoutMs,
  examples: ['redrive dlq retry 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31'],
  print(retried, { print }) {
    const { id, status, published } = retried;
    print.line(`${id} ${print.paint(toneOf(retried), status)}${published ? ', published' : ''}`);
    if (!published) print.note('nothing was published: the server has no Kafka (kafka.enabled is false)');
  },
});

export const retryAll = sliceCommand(
  {
    name: 'retry-all',
    route: 'POST /api/v1/dlq/{topic}/retry-all',
    hasOwnProgress: true,
    description: 'retry all retryable messages of a topic',
    inputs: [
      { flags: '<topic>', text: 'topic, by its original or dead-letter name' },
      { flags: '-y, --yes', text: 'do not ask for confirmation' },
    ],
    examples: ['redrive dlq retry-all orders.v1', 'redrive dlq retry-all orders.v1 --yes'],
  },
  async (session, values, terminal) => {
    const topic = String(values['topic']);
    const countPending = async (signal?: AbortSignal): Promise<Pagination> => {
      const input = { topic, status: 'PENDING', page_size: '1' };
      const call = { ...requestOf('GET /api/v1/dlq/messages', [], {}), input, signal };
      return (await session.call<{ pagination: Pagination }>(call)).value.pagination;
    };
    const pending = await countPending();
    const total = pending.total_count;
    if (values['yes'] !== true && total > 1) await askFor(topic, pending, session, terminal);
    const countDone = async (signal: AbortSignal): Promise<number> =>
      total - (await countPending(signal)).total_count;
    const isQuiet = values['json'] === true;
    const call = {
      ...requestOf('POST /api/v1/dlq/{topic}/retry-all', [], values),
      timeoutMs: retryAllTimeoutMs,
    };
    const answer = await withProgress(
      terminal,
      { label: 'retrying', unit: 'messages', total, countDone, isQuiet },
      () => session.call<AllRetried>(call),
    );
    session.show(answer, (retried) => printRetried(retried, topic, session));
    if (leftOver(answer.value) > 0) throw new SilentFailure();
  },
);

/** Messages that nobody takes care of. Those of another redrive are that redrive's: leaving them alone is no failure. */
function leftOver({ failed, skipped, excluded, remaining, exclusions }: AllRetried): number {
  const elsewhere = exclusions.filter(({ reason }) => reason === 'in_another_redrive');
  return failed + skipped + remaining + excluded - elsewhere.reduce((sum, { count }) => sum + count, 0);
}

async function askFor(
  topic: string,
  { total_count: total, total_is_estimate }: Pagination,
  { print }: ApiSession,
  terminal: Terminal,
): Promise<void> {
  requireTerminal(terminal);
  const about = total_is_estimate === true ? 'about ' : '';
  const question = `Retry ${about}${total.toLocaleString('en')} pending messages of ${escapeText(topic)}?`;
  if (await confirm(terminal, question)) return;
  print.note('no message was retried');
  throw new SilentFailure();
}

function printRetried(answer: AllRetried, topic: string, { print }: ApiSession): void {
  const { failed, skipped, excluded, remaining } = answer;
  print.line(escapeText(answer.message));
  if (failed > 0) print.note(`${failed} failed: \`redrive dlq list ${escapeText(topic)}\` shows them`);
  if (skipped > 0) print.note(`${skipped} skipped: locked, or behind a failed message with the same key`);
  if (excluded > 0) print.note(`${excluded} excluded:`);
  for (const { reason, topic: target, count } of answer.exclusions)
    print.note(`  ${count} ${explain(escapeText(reason))} (${escapeText(target)})`);
  if (remaining > 0) print.note(`${remaining} remaining: the server stopped early, run the command again`);
}

const explanations: ReadonlyMap<string, string> = new Map([
  ['in_another_redrive', 'in a redrive that has not ended'],
  ['unroutable', 'unroutable: add a rule to dlq.original_topic_rules'],
  ['no_value', 'stored without a value: there is nothing to publish'],
  ['removed_at_ingest', 'parts were removed before it was stored: edit it to give them again'],
  ['target_not_allowed', 'target topic is not in dlq.allowed_targets'],
  ['target_missing', 'target topic does not exist'],
  ['target_not_writable', 'no permission to write to the target topic'],
  ['target_not_in_scope', 'your role does not cover the target topic'],
]);

const explain = (reason: string): string => explanations.get(reason) ?? reason;
