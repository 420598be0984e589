import type { Command } from 'commander';
import { loadConfig, type Config } from '../config.ts';
import type { Terminal } from './terminal.ts';

/** The options of every command that runs from a configuration. */
export type ConfigArgs = Readonly<{ config?: string; port?: string; host?: string; dataDir?: string }>;

export function withConfigOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'configuration file (also CONFIG_PATH)')
    .option('--data-dir <folder>', 'where the embedded database keeps its data');
}

export function withServerOptions(command: Command): Command {
  return withConfigOptions(command)
    .option('-p, --port <number>', 'port of the HTTP server (also PORT)')
    .option('--host <address>', 'address of the HTTP server');
}

export function configFrom(
  args: ConfigArgs,
  defaults: NodeJS.ProcessEnv = {},
  { env }: Pick<Terminal, 'env'> = process,
): Config {
  return loadConfig({
    argv: { configPath: args.config, port: args.port, host: args.host, dataDir: args.dataDir },
    env: { ...defaults, ...env },
  });
}
