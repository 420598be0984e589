import type { Command } from 'commander';
import { AppError, codeOf } from '../kernel/errors.ts';
import { withExamples } from './examples.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { listenForStop, runUntilSignal } from './run-until-signal.ts';
import type { Terminal } from './terminal.ts';
import { explainingDatabase } from './with-database.ts';

export function addServeCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withServerOptions(program.command('serve').description('run the server: REST API, workers and ingest')),
    'redrive serve --config config.yaml',
    'DATABASE_URL=postgres://app:secret@db/redrive KAFKA_BROKERS=kafka:9092 redrive serve',
  ).action(async (args: ConfigArgs) => {
    const stopAsked = listenForStop();
    const config = configFrom(args, {}, terminal);
    const { startSystem } = await import('../compose.ts');
    const system = await explainingDatabase(config, async () => {
      try {
        return await startSystem(config, { onPortTaken: 'fail', stopAsked });
      } catch (error) {
        if (codeOf(error) !== 'EADDRINUSE') throw error;
        const { host, port } = config.server;
        throw new AppError(
          'SYS_HTTP_PORT_TAKEN',
          'internal',
          `port ${port} of ${host} is already in use: choose another one with --port, or stop the process that uses it`,
          { cause: error },
        );
      }
    });
    await runUntilSignal(system, { stopAsked });
  });
}
