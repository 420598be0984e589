import type { Command } from 'commander';
import { startSystem } from '../compose.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { runUntilSignal } from './run-until-signal.ts';

export function addServeCommand(program: Command): void {
  withServerOptions(
    program.command('serve').description('run the server from a configuration: REST API, workers, ingest'),
  ).action(async (args: ConfigArgs) => {
    const system = await startSystem(configFrom(args), { onPortTaken: 'fail' });
    await runUntilSignal(system);
  });
}
