import type { Clock } from '../../kernel/clock.ts';
import {
  isOpen,
  noteContact,
  noteDown,
  returnProbe,
  sinceContact,
  takeProbe,
  type DownCall,
  type PushCircuit,
} from '../domain/push-circuit.ts';
import { nothingClaimed, type Claimed, type ClaimedJob, type ClaimOptions } from '../claim-jobs.ts';

type LeasedJob = Pick<ClaimedJob, 'jobId' | 'lease'>;
type Claim = (options: ClaimOptions) => Promise<Claimed>;

/** The circuit breaker of a queue's target: stops pushes while the target is down, and lets single jobs probe it. */
export type PushGate = Readonly<{
  /** While the circuit is open, claims one job when a probe is due, otherwise none. */
  claim: Claim;
  /** A call did not reach the target, or the target failed. True if that is an outage, which costs no attempt. */
  noteDown(job: LeasedJob, call: Omit<DownCall, 'jobId' | 'isProbe'>): Promise<boolean>;
  /** The target answered about the job. `ranMs`: how long ago the call started. */
  noteContact(job: LeasedJob, ranMs: () => number): Promise<void>;
}>;

type Changed = Readonly<{ before: PushCircuit | null; after: PushCircuit | null }>;

export type PushGateDeps = Readonly<{
  claim: Claim;
  clock: Pick<Clock, 'monotonicMs'>;
  /** This process's copy of the circuit. */
  known: () => PushCircuit | null;
  /** Changes the circuit that all processes share, and this process's copy. */
  change: (decide: (circuit: PushCircuit | null, nowMs: number) => PushCircuit | null) => Promise<Changed>;
  /** Maximum duration of a probe. */
  probeMs: () => number;
  onChange: (circuit: PushCircuit | null) => void;
  onError: (error: unknown) => void;
}>;

/** How often a process whose calls succeed checks for failures that other processes have noted. */
const checkEveryMs = 1000;

export function createPushGate(deps: PushGateDeps): PushGate {
  const { clock, known } = deps;
  /** The job that this process has sent as its last probe. */
  let probe: LeasedJob | null = null;
  let contactAtMs = -Infinity;
  let checkedAtMs = -Infinity;

  const takeIfProbe = ({ jobId, lease }: LeasedJob): boolean => {
    const isProbe = probe !== null && probe.jobId === jobId && probe.lease.epoch === lease.epoch;
    if (isProbe) probe = null;
    return isProbe;
  };

  const change = async (decide: Parameters<typeof deps.change>[0]): Promise<Changed> => {
    const changed = await deps.change(decide);
    if (isOpen(changed.before) !== isOpen(changed.after)) deps.onChange(changed.after);
    return changed;
  };

  const claimProbe = async (options: ClaimOptions): Promise<Claimed> => {
    const { before, after } = await change((circuit, nowMs) =>
      isOpen(circuit) ? takeProbe(circuit, nowMs, deps.probeMs()) : circuit,
    );
    if (!isOpen(after)) return deps.claim(options);
    if (after === before) return nothingClaimed;
    let claimed = nothingClaimed;
    try {
      claimed = await deps.claim({ ...options, limit: 1 });
    } finally {
      if (claimed.jobs.length === 0) await change(returnProbe);
    }
    probe = claimed.jobs[0] ?? null;
    return claimed;
  };

  return {
    claim: (options) => (isOpen(known()) ? claimProbe(options) : deps.claim(options)),
    async noteDown(job, { reason, isUnreachable }) {
      const isProbe = takeIfProbe(job);
      const call: DownCall = { jobId: job.jobId, reason, isUnreachable, isProbe };
      try {
        const { after } = await change((circuit, nowMs) => {
          const answeredAtMs = nowMs - (clock.monotonicMs() - contactAtMs);
          return noteDown(sinceContact(circuit, answeredAtMs), call, nowMs);
        });
        return isOpen(after);
      } catch (error) {
        deps.onError(error);
        return isProbe;
      }
    },
    async noteContact(job, ranMs) {
      const isProbe = takeIfProbe(job);
      contactAtMs = clock.monotonicMs();
      if (known() === null && !isProbe && contactAtMs - checkedAtMs < checkEveryMs) return;
      checkedAtMs = contactAtMs;
      const note: Parameters<typeof change>[0] = (circuit, nowMs) =>
        noteContact(circuit, { isProbe, startedAtMs: nowMs - ranMs() });
      await change(note).catch(deps.onError);
    },
  };
}
