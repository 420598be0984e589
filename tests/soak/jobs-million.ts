import { startRestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import { runDeepQueue } from './deep-queue.ts';

/**
 * `node tests/soak/jobs-million.ts [jobs] [drained]`: lets a million jobs wait in one queue of a PostgreSQL of its own,
 * does a part of them in processes that are killed meanwhile, and proves that none is lost, completed twice or tried
 * beyond its budget, and that claims, other queues and people's questions take no longer than beside an empty one.
 */
const [jobs = 1_000_000, drained = 30_000] = process.argv.slice(2).map(Number);

const times = 15;
/** Of each wait; one that is in vain ends the run. */
const withinMs = 300_000;
const wholeRunWithinMs = 1_200_000;

const tooLong = setTimeout(() => {
  say(`BROKEN: not over after ${wholeRunWithinMs / 1000} s`);
  process.exit(1);
}, wholeRunWithinMs);
process.exitCode = await main();
clearTimeout(tooLong);

async function main(): Promise<number> {
  say(`${jobs} jobs, ${drained} of them to be done`);
  const postgres = await startRestartablePostgres();
  try {
    const breaches = await runDeepQueue({ postgres, jobs, drained, times, patience: 1, withinMs, say });
    for (const breach of breaches) process.stdout.write(`BREACH  ${breach}\n`);
    const isKept = breaches.length === 0;
    say(
      isKept
        ? `KEPT: none of the ${jobs} jobs is lost, completed twice or over its budget, and nobody had to wait for them`
        : `BROKEN: ${breaches.length} breaches`,
    );
    return isKept ? 0 : 1;
  } finally {
    await postgres.stop();
  }
}

function say(line: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
}
