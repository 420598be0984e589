import { test } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { startKafka } from '../../tools/kafka/start-kafka.ts';
import { checkProof, runDisturbed, storeLetters, type ProofOptions } from '../chaos/support/redrive-proof.ts';
import { openScene } from '../chaos/support/scene.ts';

/**
 * `npm test -- tests/soak/redrive-hundred-thousand.ts --test-timeout=900000`: a redrive of a hundred thousand messages
 * whose process is killed, whose broker is restarted, and that is paused on the way.
 */
const options: ProofOptions = { count: 100_000, keys: 4999, perSecond: 2000, withinMs: 600_000 };

void test(
  'A redrive of a hundred thousand messages sends each once and in order',
  { skip: await whyNoKafka() },
  async (t) => {
    const kafka = await startKafka();
    t.after(() => kafka.stop());
    const at = await openScene({ partitions: 6, brokers: kafka.brokers });
    t.after(() => at.close());
    await storeLetters(at, options);
    const proof = await runDisturbed(at, kafka, options);
    await checkProof(at, proof, options.count);
    process.stdout.write(`${JSON.stringify(proof.redrive.receipt)}, ${proof.records.length} records\n`);
  },
);
