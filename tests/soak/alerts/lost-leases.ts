import { recordSamples } from '../../alerts/record-samples.ts';
import { openOutboxScene, untilStale } from '../../chaos/support/outbox-scene.ts';
import { until } from '../../chaos/support/until.ts';
import { watchAlerts, type WatchedAlert } from './watch-alerts.ts';

const slice = 'slice="outbox"';
const alerts: readonly WatchedAlert[] = [
  ['StaleWrites', 'ticket', slice],
  ['LeasesReaped', 'ticket', slice],
];

/** Within every 15 minutes one, for longer than the 30 that it takes to fire. */
const rounds = 4;
const minutesBetween = 12;

/** A worker that SIGSTOP holds for longer than its lease, again and again, beside one that takes over. */
export async function loseLeases(): Promise<void> {
  const at = await openOutboxScene();
  try {
    const stops = Array.from({ length: rounds }, (_, i) => ({
      at: 'order_answered' as const,
      act: 'stop' as const,
      nth: i + 1,
    }));
    const sleeper = await at.start({ faults: stops });
    const rescuer = await at.start();
    const recorder = recordSamples([sleeper.url, rescuer.url]);
    const watch = watchAlerts(recorder);
    await recorder.scrape(35);
    watch.silent(...alerts);
    for (let round = 1; round <= rounds; round += 1) {
      rescuer.pause();
      await at.place([`order-of-round-${round}`]);
      await sleeper.stopped();
      rescuer.resume();
      await until('the rescuer has sent it', async () => (await at.count('sent')) === round);
      sleeper.resume();
      await untilStale(sleeper, round);
      // Once is no reason to tell anybody: the alert wants half an hour of it.
      await recorder.scrape(minutesBetween);
      if (round === 1) watch.silent(...alerts);
    }
    const how = `${rounds} times in ${rounds * minutesBetween} min a worker is stopped for longer than its lease`;
    watch.firing(how, ...alerts);
    await recorder.scrape(17);
    watch.silent(...alerts);
    await watch.verify();
  } finally {
    await at.close();
  }
}
