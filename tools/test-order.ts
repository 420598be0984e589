/**
 * The longest files of `npm test`, which start first: a long one that starts last runs alone. `npm test` prints the
 * slowest files when it ends.
 */
export const longFiles: readonly string[] = [
  'tests/e2e/jobs-through-sdk.test.ts',
  'tests/chaos/memory-work.test.ts',
  'tests/chaos/kill-retry.test.ts',
  'tests/docs/npm-start.test.ts',
  'tests/e2e/database-rights.test.ts',
  'tests/chaos/two-replicas.test.ts',
  'tests/chaos/memory-requests.test.ts',
  'tests/chaos/kill-redrive.test.ts',
  'tests/chaos/kill-ingest.test.ts',
  'tests/chaos/saga-participants.test.ts',
  'tests/alerts/rules.test.ts',
  'tests/chaos/broker-restart.test.ts',
  'tests/e2e/dlq-ingest-readiness.test.ts',
  'tests/chaos/jobs-postgres-restart.test.ts',
  'src/platform/broker/kafka/java-clients.int.test.ts',
  'src/outbox/accept/canonical-json.int.test.ts',
  'src/notify/notify-round.int.test.ts',
  'tests/e2e/package.test.ts',
  'tests/e2e/jobs-push-outage.test.ts',
  'tests/chaos/jobs-deep-queue.test.ts',
  'tests/chaos/jobs-heap.test.ts',
  'src/platform/broker/kafka/no-write-right.int.test.ts',
  'src/platform/broker/kafka/recovery.int.test.ts',
  'src/dlq/redrive/retry-all.int.test.ts',
  'tests/chaos/jobs-bad-handler.test.ts',
  'src/sdk/jobs-worker.int.test.ts',
  'tests/e2e/saga-outage.test.ts',
  'src/platform/embedded/embedded-postgres.int.test.ts',
];

/** Long files first, the others by name. */
export function longestFirst(files: readonly string[]): readonly string[] {
  const rank = new Map(longFiles.map((file, index) => [file, index]));
  const rankOf = (file: string): number => rank.get(file) ?? longFiles.length;
  return files.toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
}
