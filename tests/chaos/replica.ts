import { startSystem } from '../../src/compose.ts';
import { loadConfig } from '../../src/config.ts';
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
process.once('SIGTERM', () => void system.stop().then(() => process.exit(0)));
process.stdout.write(`${JSON.stringify({ ready: true, url: system.url })}\n`);
