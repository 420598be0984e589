import type { Command } from 'commander';
import { loadConfig, type Config } from '../config/config.ts';
import type { Terminal } from './terminal.ts';

/** Options of every command that loads the configuration. */
export type ConfigArgs = Readonly<{ config?: string; port?: string; host?: string; dataDir?: string }>;

export function withConfigOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'configuration file (env: CONFIG_PATH)')
    .option('--data-dir <folder>', 'data folder of the embedded database');
}

export function withServerOptions(command: Command): Command {
  return withConfigOptions(command)
    .option('-p, --port <number>', 'port of the HTTP server (env: PORT)')
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
