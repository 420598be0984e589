import assert from 'node:assert/strict';
import type { Seal } from '../../../src/audit/chain.ts';
import { verifyChain, type Anchor } from '../../../src/audit/verify/verify-chain.ts';
import type { Broker } from '../../../src/platform/broker/port.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { readAll } from '../../support/broker-conformance.ts';
import type { Replica } from './start-replica.ts';
import { until } from './until.ts';

/** The chain of the audit log from outside of the processes that write it. */

export async function countBlocks(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`SELECT count(*)::int AS count FROM audit.seals`);
  return row?.count ?? 0;
}

/** As if the lease of a dead process had expired meanwhile. */
export async function expireSealLease(db: Database): Promise<void> {
  await db.query(sql`UPDATE platform.leases SET lease_until = clock_timestamp() WHERE name = 'audit.seal'`);
}

/** Every event is in exactly one block, and the chain continues from the first one. */
export async function untilSealed(db: Database, explain: () => string): Promise<void> {
  await until(
    'every event is sealed',
    async () => {
      const { finding, unsealed } = await verifyChain(db, {});
      assert.equal(finding, null, finding?.message);
      return unsealed === 0;
    },
    { withinMs: 60_000, explain },
  );
  const [sums] = await db.query<{ events: number; sealed: number; numbers: number }>(sql`
    SELECT count(*)::int AS events, count(DISTINCT seq)::int AS numbers,
           (SELECT sum(events)::int FROM audit.seals) AS sealed
    FROM audit.events`);
  assert.ok(sums !== undefined && sums.events === sums.sealed && sums.events === sums.numbers, 'sealed once');
}

/** What the processes have logged about their blocks: as the operator's log server has it. */
export function loggedBlocks(replicas: readonly Replica[]): readonly Anchor[] {
  return replicas
    .flatMap((replica) => replica.log().split('\n'))
    .filter((line) => line.includes('"sealed audit events"'))
    .map((line) => JSON.parse(line) as Anchor)
    .map(({ block, hash }) => ({ block, hash }));
}

/** The blocks in the topic of anchors, once all are there. */
export async function sentAnchors(
  { db, broker }: Readonly<{ db: Database; broker: Broker }>,
  topic: string,
): Promise<readonly Anchor[]> {
  const anchors = async (): Promise<readonly Anchor[]> =>
    (await readAll(broker, topic)).map(({ value }) => {
      const { block, hash } = JSON.parse(String(value)) as Seal;
      return { block, hash };
    });
  const count = await countBlocks(db);
  await until('all anchors are sent', async () => blocksOf(await anchors()).size >= count);
  return anchors();
}

const blocksOf = (anchors: readonly Anchor[]): ReadonlySet<number> =>
  new Set(anchors.map(({ block }) => block));

/** Every block has an anchor in both places, and none of them says anything else than the chain. */
export async function assertAnchored(db: Database, ...places: readonly (readonly Anchor[])[]): Promise<void> {
  const count = await countBlocks(db);
  for (const anchors of places) {
    const blocks = [...blocksOf(anchors)].toSorted((a, b) => a - b);
    assert.deepEqual(
      blocks,
      Array.from({ length: count }, (_, i) => i + 1),
    );
    const { finding } = await verifyChain(db, { anchors });
    assert.equal(finding, null, finding?.message);
  }
}
