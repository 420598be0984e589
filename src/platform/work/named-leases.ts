import { remainingMs, type Lease } from '../../kernel/lease.ts';
import { sql } from '../postgres/sql.ts';
import { createLeaseRenewer, type LeaseRenewer } from './lease-renewer.ts';
import { withResolvers } from './with-resolvers.ts';
import { claim, leaseIsOver, release, renew, type Claimed, type Worker, type WorkTable } from './work.ts';

export type WantedLease = Readonly<{
  name: string;
  /** Called after every try that did not fail, but found the lease with another process. */
  onTaken: () => void;
}>;

export type HeldLease = Readonly<{
  name: string;
  epoch: bigint;
  /** Aborts when the lease is lost, or has expired on our own clock. */
  leased: AbortSignal;
}>;

export type NamedLeasesOptions = Readonly<{
  leaseMs?: number;
  onError: (error: unknown) => void;
}>;

/** After a crash, another process takes over after this time, and a third of it. */
const usualLeaseMs = 15_000;

const leases: WorkTable = {
  slice: 'platform',
  table: sql`platform.leases`,
  key: sql`name`,
  keyArray: sql`text[]`,
};

type Waiting = WantedLease & Readonly<{ grant: (held: HeldLease) => void }>;
type Held = { readonly name: string; lease: Lease; readonly ended: AbortController };

/**
 * The named leases of one process. A server has more than ten of them, so they all last equally long: one statement
 * renews those that the process holds, and one claims those that it waits for.
 */
export class NamedLeases {
  readonly #worker: Worker;
  readonly #leaseMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #renewer: LeaseRenewer<Held>;
  readonly #waiting = new Map<string, Waiting>();
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #isBusy = false;
  #claimAtMs = 0;

  constructor(worker: Worker, { leaseMs = usualLeaseMs, onError }: NamedLeasesOptions) {
    this.#worker = worker;
    this.#leaseMs = leaseMs;
    this.#onError = onError;
    this.#renewer = createLeaseRenewer<Held>({
      clock: worker.clock,
      leaseMs,
      leased: () => [...this.#held.values()],
      renew: (held) => renew(worker, leases, held, { keyOf: ({ name }) => name, leaseMs }),
      onRenewed: ({ renewed, lost, endsAtMs }) => {
        for (const held of renewed) held.lease = { ...held.lease, endsAtMs };
        for (const held of lost) this.#end(held);
      },
    });
  }

  /** Resolves when this process has the lease, or with null when the signal aborts. */
  async take(wanted: WantedLease, signal: AbortSignal): Promise<HeldLease | null> {
    if (signal.aborted) return null;
    const { promise, resolve } = withResolvers<HeldLease | null>();
    const giveUp = (): void => {
      this.#waiting.delete(wanted.name);
      resolve(null);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    this.#waiting.set(wanted.name, { ...wanted, grant: resolve });
    this.#claimAtMs = 0;
    this.#timer ??= setInterval(() => this.#tick(), this.#leaseMs / 30);
    this.#tick();
    return promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Another process may take it at once. */
  async giveBack({ name, epoch }: HeldLease): Promise<void> {
    const held = this.#held.get(name);
    if (held?.lease.epoch === epoch) this.#end(held);
    await release(this.#worker.db, leases, { keys: [name], epoch });
  }

  #end(held: Held): void {
    if (this.#held.get(held.name) === held) this.#held.delete(held.name);
    held.ended.abort();
  }

  #tick(): void {
    // Not in the line of statements, which may hang.
    for (const held of this.#held.values())
      if (remainingMs(held.lease, this.#worker.clock) <= 0) this.#end(held);
    if (this.#waiting.size + this.#held.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else if (!this.#isBusy) {
      this.#isBusy = true;
      void this.#renewAndClaim()
        .catch(this.#onError)
        .finally(() => (this.#isBusy = false));
    }
  }

  async #renewAndClaim(): Promise<void> {
    await this.#renewer.renewDue();
    const nowMs = this.#worker.clock.monotonicMs();
    if (this.#waiting.size === 0 || nowMs < this.#claimAtMs) return;
    this.#claimAtMs = nowMs + this.#leaseMs / 3;
    const tried = [...this.#waiting.values()];
    const names = tried.map(({ name }) => name);
    const { lease, rows } = await claimLeases(this.#worker, names, this.#leaseMs);
    const claimed = new Set(rows.map(({ name }) => name));
    const unwanted = [...claimed].filter((name) => !this.#grant(name, lease));
    if (unwanted.length > 0) await release(this.#worker.db, leases, { keys: unwanted, epoch: lease.epoch });
    for (const { name, onTaken } of tried) if (!claimed.has(name)) onTaken();
  }

  /** False if nobody waits for the lease any more. */
  #grant(name: string, lease: Lease): boolean {
    const waiting = this.#waiting.get(name);
    if (waiting === undefined) return false;
    const ended = new AbortController();
    this.#waiting.delete(name);
    this.#held.set(name, { name, lease, ended });
    waiting.grant({ name, epoch: lease.epoch, leased: ended.signal });
    return true;
  }
}

async function claimLeases(
  worker: Worker,
  names: readonly string[],
  leaseMs: number,
): Promise<Claimed<Readonly<{ name: string }>>> {
  await worker.db.query(sql`
    INSERT INTO platform.leases (name) SELECT unnest(${names}::text[]) ON CONFLICT DO NOTHING`);
  return claim<{ name: string }>(worker, leases, {
    where: sql`t.name = ANY (${names}::text[]) AND ${leaseIsOver}`,
    orderBy: sql`t.name`,
    limit: names.length,
    leaseMs,
    set: sql`lease_lost = false`,
    returning: sql`t.name`,
  });
}
