import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { callAndShow } from './dlq-session.ts';
import { toneOf } from './message.ts';

type Retried = Readonly<{ id: string; status: string; published: boolean }>;
type AllRetried = Readonly<{ retried: number; message: string; failed?: number; unroutable?: number }>;

/** A publish may take the server's timeout and its settling a lease. */
const retryTimeoutMs = 120_000;
/** The answer comes when the last message is done; the server goes on if nobody waits. */
const retryAllTimeoutMs = 6 * 3_600_000;

export function addRetryCommands(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      dlq.command('retry').description('publish a message to its original topic again'),
    ).argument('<id>', "the message's id"),
    'redrive dlq retry 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  ).action((id: string, args: ApiArgs) =>
    callAndShow<Retried>(
      { terminal, args },
      { method: 'POST', path: ['messages', id, 'retry'], timeoutMs: retryTimeoutMs },
      ({ id: retried, status, published }, { print }) => {
        print.line(`${retried} ${print.paint(toneOf(status), status)}${published ? ', published' : ''}`);
        if (!published) print.note('nothing was published: the server has no Kafka (kafka.enabled is false)');
      },
    ),
  );

  withExamples(
    withApiOptions(dlq.command('retry-all').description('retry everything retryable of a topic')).argument(
      '<topic>',
      'the topic, by its original or its dead-letter name',
    ),
    'redrive dlq retry-all orders.v1',
  ).action((topic: string, args: ApiArgs) =>
    callAndShow<AllRetried>(
      { terminal, args },
      { method: 'POST', path: [topic, 'retry-all'], timeoutMs: retryAllTimeoutMs },
      ({ message, failed: failures = 0, unroutable = 0 }, { print }) => {
        print.line(escapeText(message));
        if (failures > 0) print.note(`${failures} failed: \`redrive dlq list ${topic}\` shows them`);
        if (unroutable > 0)
          print.note(
            `${unroutable} skipped, as no topic is known for them: add a rule to dlq.original_topic_rules`,
          );
      },
      ({ failed = 0 }) => failed === 0,
    ),
  );
}
