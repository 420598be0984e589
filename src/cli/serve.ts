import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { AppError, codeOf } from '../kernel/errors.ts';
import { withExamples } from './examples.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { listenForStop, runUntilSignal } from './run-until-signal.ts';
import type { Terminal } from './terminal.ts';
import { explainingDatabase } from './with-database.ts';

export function addServeCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withServerOptions(
      program.command('serve').description('run the server: REST API, console, workers and ingest'),
    ),
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
        throw portTaken(config.server, error);
      }
    });
    await runUntilSignal(system, { stopAsked });
  });
}

/** The metrics may have a port of their own. */
function portTaken(
  { host, port, metricsHost = host, metricsPort }: Config['server'],
  error: unknown,
): AppError {
  const isOfMetrics = (error as Readonly<{ port?: number }>).port === metricsPort;
  const [place, setting] = isOfMetrics
    ? [`port ${metricsPort} of ${metricsHost}`, 'server.metrics_port']
    : [`port ${port} of ${host}`, '--port'];
  return new AppError(
    'SYS_HTTP_PORT_TAKEN',
    'internal',
    `${place} is already in use: choose another one with ${setting}, or stop the process that uses it`,
    { cause: error },
  );
}
