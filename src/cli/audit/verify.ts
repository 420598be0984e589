import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure } from '../exit-code.ts';
import { showFacts } from '../output/facts.ts';
import { withProgress } from '../output/progress.ts';
import { sliceCommand } from '../slice/api-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { afterBlock } from './export.ts';
import { readAnchors, type Anchor } from './read-anchors.ts';

type Verified = Readonly<{
  ok: boolean;
  blocks: number;
  events: number;
  first_bad_block: number | null;
  problem: string | null;
  message: string | null;
  next_after_block: number | null;
  head: Readonly<{ block: number; hash: string }> | null;
  unsealed: number;
  /** How many were compared. */
  anchors: number;
}>;

type VerifyValues = Readonly<{ afterBlock?: number; anchors?: string; json?: boolean }>;

/** The server compares blocks for ten seconds per call. */
const timeoutMs = 60_000;
const anchorsPerCall = 1000;

export const verify = sliceCommand(
  {
    name: 'verify',
    hasOwnProgress: true,
    description:
      'follow the chain of the log, and compare every block with its events; fails on a difference',
    inputs: [
      afterBlock,
      {
        flags: '--anchors <file>',
        text: 'compare with blocks noted outside the database: lines of JSON with `block` and `hash`, such as the log of the server (- for standard input)',
        field: null,
      },
    ],
    examples: [
      'redrive audit verify',
      "grep 'sealed audit events' server.log | redrive audit verify --anchors -",
    ],
  },
  async (session, values, terminal) => {
    const verified = await verifyAll(session, values, terminal);
    const { next_after_block: _next, ...sum } = verified;
    if (values['json'] === true) session.print.json(JSON.stringify(sum));
    else show(session, verified);
    if (!verified.ok) throw new SilentFailure();
  },
);

/** Calls until the end of the chain, or its first bad block; the anchors in as many calls as they need. */
async function verifyAll(session: ApiSession, values: VerifyValues, terminal: Terminal): Promise<Verified> {
  const anchors = values.anchors === undefined ? [] : await readAnchors(terminal, values.anchors);
  const asked = requestOf('POST /api/v1/audit/verify', [], {});
  let sum = { blocks: 0, events: 0 };
  const progress = {
    label: 'verifying',
    unit: 'events',
    countDone: () => sum.events,
    isQuiet: values.json === true,
  };
  return withProgress(terminal, progress, async () => {
    for (let after = values.afterBlock, sent = 0; ; sent += anchorsPerCall) {
      const some: readonly Anchor[] = anchors.slice(sent, sent + anchorsPerCall);
      const input = { after_block: after, anchors: some };
      const { value } = await session.call<Verified>({ ...asked, input, timeoutMs });
      sum = { blocks: sum.blocks + value.blocks, events: sum.events + value.events };
      const isMore = value.next_after_block !== null || anchors.length > sent + anchorsPerCall;
      if (!value.ok || !isMore) return { ...value, ...sum, anchors: anchors.length };
      after = value.next_after_block ?? value.head?.block;
    }
  });
}

function show({ print }: ApiSession, verified: Verified): void {
  const { ok, blocks, events, first_bad_block: bad, problem, message, head, unsealed, anchors } = verified;
  showFacts(print, [
    ['result', ok ? 'the chain is whole' : `block ${bad}: ${problem}`, ok ? 'good' : 'bad'],
    ['found', message],
    ['checked', `${blocks} blocks, ${events} events, ${anchors} anchors`],
    ['last block', head === null ? 'none' : `${head.block} ${head.hash}`],
    ['not sealed yet', `${unsealed} events`],
  ]);
}
