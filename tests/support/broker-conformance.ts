import { after, before, describe, it } from 'node:test';
import { closingPromises } from './broker-conformance/closing.ts';
import { groupPromises } from './broker-conformance/groups.ts';
import { listingPromises } from './broker-conformance/listing.ts';
import { publishingPromises } from './broker-conformance/publishing.ts';
import { readingPromises } from './broker-conformance/reading.ts';
import type { Broker } from '../../src/platform/broker/port.ts';

export { partitionsOf, readAll, readPlaced, type PlacedRecord } from './broker-conformance/fixtures.ts';

const promises = { ...listingPromises, ...readingPromises, ...publishingPromises, ...groupPromises };

/** Registers a test for each promise of the port. The factory gives a broker on a cluster of its own choosing. */
export function testBrokerConformance(name: string, createBroker: () => Promise<Broker>): void {
  void describe(`${name} keeps the promises of the broker port`, () => {
    let broker: Broker;
    before(async () => {
      broker = await createBroker();
    });
    after(() => broker.close());

    for (const [promise, prove] of Object.entries(promises)) void it(promise, () => prove(broker));
    for (const [promise, prove] of Object.entries(closingPromises))
      void it(promise, async () => prove(await createBroker()));
  });
}
