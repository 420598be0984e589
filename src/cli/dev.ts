import type { Command } from 'commander';
import { startSystem } from '../compose.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { runUntilSignal } from './run-until-signal.ts';

export function addDevCommand(program: Command): void {
  withServerOptions(
    program
      .command('dev')
      .description('run the whole system on this machine: embedded PostgreSQL, local broker, demo traffic'),
  )
    .option('--no-demo', 'without demo traffic')
    .option('--logs', 'print the log lines as well')
    .action(async (args: ConfigArgs & Readonly<{ demo: boolean; logs?: boolean }>) => {
      const defaults = process.env['KAFKA_BROKERS'] === undefined ? { KAFKA_LOCAL: 'true' } : {};
      const config = configFrom(args, { LOG_LEVEL: args.logs === true ? 'info' : 'warn', ...defaults });
      const system = await startSystem(config, { onPortTaken: 'next' });
      process.stdout.write(
        `Redrive is ready: ${system.url}/docs (API), ${system.url}/api/v1/dlq (dead letters). Ctrl-C stops it.\n`,
      );
      await runUntilSignal(system);
    });
}
