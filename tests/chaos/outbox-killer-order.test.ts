import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PartnerAct, PartnerRequest } from '../support/partner.ts';
import { keysFrom, openOutboxScene, type OrderRow } from './support/outbox-scene.ts';
import type { Replica } from './support/start-replica.ts';

const killer = 'killer-order';

describe('An order whose send kills the process', () => {
  it('ends dead after its three sends, alone at the last, and its 499 neighbours are sent', async (t) => {
    let sender: Replica | undefined;
    const script = ({ key }: PartnerRequest): PartnerAct => {
      if (key !== killer) return { act: 'ok' };
      if (sender !== undefined) process.kill(sender.pid, 'SIGKILL');
      return { act: 'hang', effect: false };
    };
    const at = await openOutboxScene({ partner: { script }, env: { OUTBOX_RETRY_MAX: '2' } });
    t.after(() => at.close());
    const neighbours = keysFrom('neighbour', 499);
    const crashes: (readonly OrderRow[])[] = [];

    sender = await at.start();
    await at.place([...neighbours.slice(0, 250), killer, ...neighbours.slice(250)]);
    for (let send = 1; send <= 3; send += 1) {
      assert.equal(await sender.died(), 'SIGKILL');
      crashes.push(await at.rows('sending'));
      sender = await at.start();
    }
    await at.atRest(60_000);

    for (const crash of crashes) assert.ok(crash.some(({ key }) => key === killer));
    assert.deepEqual(
      crashes[2]?.map(({ key }) => key),
      [killer],
      'the last time it is alone',
    );
    const rows = await at.check();
    const dead = rows.filter(({ status }) => status === 'dead');
    assert.deepEqual(
      dead.map(({ key, retryCount, lastError }) => [key, retryCount, lastError]),
      [[killer, 2, 'UNKNOWN: lease expired']],
    );
    assert.equal(rows.filter(({ status }) => status === 'sent').length, 499);
    assert.equal(at.partner.ledger.get(killer), undefined);
  });
});
