/** What a handler gets beside its job. */
export type JobContext = Readonly<{
  /** Aborts when the lease is lost, the job is cancelled or its timeout is over; its outcome is then ignored. */
  signal: AbortSignal;
  /** Reports progress as JSON; stored every second. */
  progress(value: unknown): void;
  /** Renews the lease; throws if it is lost. */
  heartbeat(): Promise<void>;
}>;
