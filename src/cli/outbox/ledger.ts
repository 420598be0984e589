import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import type { Tone } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';
import { instantFact, showFacts, showTitle, type Fact } from '../output/facts.ts';
import { statusOf, type Attempt, type Order } from './order.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { showAttempts } from './show.ts';

/** One use of a key: it is free again when its use has been archived. */
type Use = Readonly<{
  idempotency_key: string;
  request_digest: string;
  status: 'accepted' | 'succeeded' | 'failed';
  result_digest: string | null;
  outside_id: string | null;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  archived: boolean;
  order_id: number;
  supersedes_id: number | null;
  superseded_by_id: number | null;
  order: Order | null;
  attempts: readonly Attempt[];
}>;

type Proof = Use & Readonly<{ earlier_uses: readonly Use[] }>;

export function addLedgerCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      outbox.command('ledger').description('the proof of one effect: what became of an idempotency key'),
    ).argument('<key>', 'the idempotency key'),
    'redrive outbox ledger order-2026-000117',
  ).action(async (key: string, args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'outbox');
    session.show(await session.call<Proof>({ path: ['ledger', key] }), (proof) => {
      showUse(session, proof);
      for (const use of proof.earlier_uses) {
        showTitle(session.print, 'an earlier use of the key');
        showUse(session, use);
      }
    });
  });
}

function showUse({ print, now }: ApiSession, use: Use): void {
  showFacts(print, factsOf(use, now));
  showAttempts(print, use.attempts);
}

const tones: Readonly<Record<Use['status'], Tone>> = {
  accepted: 'strong',
  succeeded: 'good',
  failed: 'bad',
};

function factsOf(use: Use, now: Date): readonly Fact[] {
  const { order } = use;
  return [
    ['key', use.idempotency_key],
    ['effect', effectOf(use), tones[use.status]],
    ['outside id', use.outside_id],
    ['order', `${use.order_id}${order === null ? '' : `, ${statusOf(order)}, for ${order.destination}`}`],
    ['supersedes', use.supersedes_id === null ? null : String(use.supersedes_id)],
    ['superseded by', use.superseded_by_id === null ? null : String(use.superseded_by_id)],
    ['request digest', use.request_digest],
    ['result digest', use.result_digest],
    ['accepted', instantFact(use.created_at, now)],
    ['updated', instantFact(use.updated_at, now)],
    ['key is kept till', use.expires_at ?? (use.archived ? null : 'its order is sent or decided about')],
    ['archived', use.archived ? 'yes: the key is free again' : null],
  ];
}

/** What the ledger proves, in words. */
function effectOf({ status, order }: Use): string {
  if (status === 'succeeded') return 'succeeded: it has happened outside, once';
  if (order?.in_doubt === true) return `${status}: in doubt, an attempt may have had its effect`;
  return status === 'failed'
    ? 'failed: it has not happened outside'
    : 'accepted: not known to have happened yet';
}
