import { createHash, hash } from 'node:crypto';
import { canonicalJson } from '../kernel/canonical-json.ts';

/**
 * The chain of the audit log. The sealer takes the events between two numbers, `(after_seq, last_seq]`, and writes one
 * block for each partition that they are in:
 *
 *   rows_sha256 = sha256(the events in the order of seq, each as canonical JSON (RFC 8785) and a line end)
 *   hash        = sha256(hash of the block before (32 bytes) || canonical JSON of the block without both hashes)
 *
 * The first block follows 32 zero bytes. The blocks of one round share the range, so every number up to the last block
 * belongs to exactly one round: an event that appears later in a sealed range is found, whatever its partition.
 */
export type Block = Readonly<{
  block: number;
  /** Exclusive. */
  after_seq: number;
  last_seq: number;
  kept: 'usual' | 'long';
  /** The first day of its partition: of a month, or of a year. */
  month: string;
  events: number;
  rows_sha256: string;
  sealed_at: string;
}>;

export type Seal = Block & Readonly<{ previous: string; hash: string }>;

/** An event as it is hashed, shown and exported. */
export type AuditEvent = Readonly<{ seq: number; at: string; kept: 'usual' | 'long' }> &
  Readonly<Record<string, unknown>>;

export const firstPrevious = '00'.repeat(32);

/** The hash and the number of the events of one block. */
export function createRowsHash() {
  const sha256 = createHash('sha256');
  let events = 0;
  return {
    add(event: AuditEvent): void {
      sha256.update(`${canonicalJson(event)}\n`);
      events += 1;
    },
    end: () => ({ events, rows_sha256: sha256.digest('hex') }),
  };
}

export function hashOfBlock(previous: string, block: Block): string {
  const { block: number, after_seq, last_seq, kept, month, events, rows_sha256, sealed_at } = block;
  const content = canonicalJson({
    block: number,
    after_seq,
    last_seq,
    kept,
    month,
    events,
    rows_sha256,
    sealed_at,
  });
  return hash('sha256', Buffer.concat([Buffer.from(previous, 'hex'), Buffer.from(content)]));
}

/** The partition of an event, as the first day of its month or year. */
function partitionOf({ kept, at }: Pick<AuditEvent, 'kept' | 'at'>): string {
  return kept === 'long' ? `${at.slice(0, 4)}-01-01` : `${at.slice(0, 7)}-01`;
}

/** The events of one round by partition, in the order in which their blocks follow each other. */
export function createRound() {
  const parts = new Map<string, ReturnType<typeof createRowsHash>>();
  return {
    add(event: AuditEvent): void {
      const name = `${event.kept} ${partitionOf(event)}`;
      const part = parts.get(name) ?? createRowsHash();
      parts.set(name, part);
      part.add(event);
    },
    end: () =>
      [...parts]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, part]) => {
          const [kept = '', month = ''] = name.split(' ');
          return { kept: kept as Block['kept'], month, ...part.end() };
        }),
  };
}
