import assert from 'node:assert/strict';
import { recordSamples } from '../../alerts/record-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { startOutboxSystem } from '../../support/outbox-system.ts';
import { startPartner } from '../../support/partner.ts';
import { watchAlerts } from './watch-alerts.ts';

const broker = 'destination="broker"';

/** A destination that takes a request and never answers, and one that is not there for a while. */
export async function breakPartner(): Promise<void> {
  const outbox = await startOutboxSystem({
    destinations: () => ({ mute: { timeout_ms: 300, idempotency: 'none' } }),
    env: { OUTBOX_PROBE_INITIAL_MS: '200', OUTBOX_PROBE_MAX_MS: '1000' },
  });
  const { system, partner } = outbox;
  const recorder = recordSamples(system.url);
  const watch = watchAlerts(recorder);
  const measured = (line: RegExp): Promise<void> =>
    eventually(async () => assert.match((await system.api.get('/metrics')).text, line), { withinMs: 60_000 });
  try {
    await outbox.becomes(await outbox.order(), 'sent');
    await measured(/^outbox_circuit_open\{destination="broker"\} 0$/m);
    await recorder.scrape(6);
    watch.silent(['OutboxUnknownOutcome', 'ticket'], ['OutboxCircuitOpen', 'ticket', broker]);
    await outbox.order({ destination: 'mute', does: [{ act: 'hang', effect: true }] });
    await measured(/^outbox_unknown_outcomes_total [1-9]/m);
    await recorder.scrape(2);
    watch.firing('the partner takes a request and never answers', ['OutboxUnknownOutcome', 'ticket']);
    await recorder.scrape(17);
    watch.silent(['OutboxUnknownOutcome', 'ticket']);

    await partner.stop();
    for (let i = 0; i < 20; i += 1) await outbox.order();
    await measured(/^outbox_circuit_open\{destination="broker"\} 1$/m);
    await recorder.scrape(7);
    watch.firing('the partner is stopped', ['OutboxCircuitOpen', 'ticket', broker]);
    const back = await startPartner({ port: partner.port, ledger: partner.ledger });
    await measured(/^outbox_circuit_open\{destination="broker"\} 0$/m);
    await recorder.scrape(2);
    watch.silent(['OutboxCircuitOpen', 'ticket', broker]);
    await back.stop();
    await watch.verify();
  } finally {
    await outbox.drop();
  }
}
