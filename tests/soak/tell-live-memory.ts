import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Preloaded into a process that is watched: collects its garbage now and then, and tells its parent what is left. What
 * V8 has not got round to collecting is not a leak.
 */
const everyMs = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

setInterval(() => {
  collectGarbage();
  process.send?.(process.memoryUsage());
}, everyMs).unref();

// Nobody would stop it.
process.once('disconnect', () => process.exit(1));
process.channel?.unref();
