import { startSystem } from '../../src/compose.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { wrapWithFaults, type FaultPlan } from './support/faults.ts';

/**
 * One replica in a process of its own, so that it can really be killed and stopped. Configured by the
 * environment like any other; CHAOS_PLAN says what goes wrong. Prints one line when it is ready.
 */
const config = loadConfig({ env: process.env });
const plan = JSON.parse(process.env['CHAOS_PLAN'] ?? '{"faults":[]}') as FaultPlan;
const system = await startSystem(config, {
  onPortTaken: 'fail',
  logger: createLogger({
    service: config.app.name,
    version: config.app.version,
    environment: config.app.environment,
    level: config.telemetry.logLevel,
    stream: process.stderr,
  }),
  wrap: wrapWithFaults(plan),
});
async function stop(): Promise<void> {
  await system.stop();
  const { maxRSS } = process.resourceUsage();
  process.stdout.write(`${JSON.stringify({ max_rss_kb: maxRSS })}\n`, () => process.exit(0));
}
process.once('SIGTERM', () => void stop());
process.stdout.write(`${JSON.stringify({ ready: true, url: system.url })}\n`);
