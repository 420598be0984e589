import { userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import type { Act } from '../kernel/audit/act.ts';
import type { Action } from '../kernel/audit/actions.ts';
import { AppError } from '../kernel/errors.ts';
import { formatTimestamp } from '../kernel/timestamp.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { migrated } from './dlq/archive.ts';
import { withExamples } from './examples.ts';
import { SilentFailure } from './exit-code.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from './options.ts';
import { numberColumn, textColumn } from './output/columns.ts';
import { createPrinter } from './output/printer.ts';
import type { Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

type KeyArgs = ConfigArgs & Readonly<{ json?: boolean; reason?: string }>;

/** Data keys, without a server: with the configuration's database and master key. */
export function addKeysCommand(program: Command, terminal: Terminal): void {
  const keys = withExamples(
    program.command('keys').description('data keys that encrypt stored messages: status, rewrap, rotate'),
    'redrive keys status --config config.yaml',
    "redrive keys rewrap --reason 'yearly rotation' --config config.yaml",
  );
  const add = (name: string, description: string): Command =>
    withExamples(
      withConfigOptions(keys.command(name).description(description)).option('--json', 'print JSON'),
      `redrive keys ${name}${name === 'status' ? '' : " --reason 'yearly rotation'"} --config config.yaml`,
    );
  add('status', 'list all data keys, and whether the master key unwraps them').action((args: KeyArgs) =>
    showStatus(terminal, args),
  );
  add('rewrap', 'put all data keys under the newest master key; reads no message, and can be repeated')
    .requiredOption('--reason <text>', 'reason, for the audit log')
    .action((args: KeyArgs) => rewrap(terminal, args));
  add('rotate', 'make a new data key, which encrypts dead letters from now on')
    .requiredOption('--reason <text>', 'reason, for the audit log')
    .action((args: KeyArgs) => rotate(terminal, args));
}

async function showStatus(terminal: Terminal, args: KeyArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const { listKeys, createMasterKey } = await import('../compose/manage-keys.ts');
  const master = createMasterKey(config.protect);
  const keys = await withDatabase(config, (db) => migrated(() => listKeys({ db, master })));
  const print = createPrinter(terminal);
  if (args.json === true) print.json(JSON.stringify({ keys }));
  else if (keys.length === 0) print.line('there are no data keys: nothing was encrypted yet');
  else
    print.table<(typeof keys)[number]>(
      [
        numberColumn('ID', ({ id }) => id),
        textColumn('MODULE', ({ slice }) => slice),
        textColumn('PURPOSE', ({ purpose, month, turn }) =>
          month === null ? purpose : `${month}${turn === 0 ? '' : `.${turn}`}`,
        ),
        textColumn('WRAPPED BY', ({ wrappedBy }) => wrappedBy),
        textColumn('CREATED', ({ createdMs }) => formatTimestamp(new Date(createdMs))),
        textColumn('USABLE', ({ trouble }) => trouble ?? 'yes', 20),
      ],
      keys,
    );
  if (keys.some(({ trouble }) => trouble !== null)) throw new SilentFailure();
}

async function rewrap(terminal: Terminal, args: KeyArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const { rewrapKeys } = await import('../compose/manage-keys.ts');
  const act = actOf('system:keys:rewrap', args);
  const done = await withDatabase(config, (db) =>
    migrated(async () => rewrapKeys({ db, master: await masterOf(config, db), act })),
  );
  const print = createPrinter(terminal);
  if (args.json === true) print.json(JSON.stringify(done));
  else {
    print.line(`rewrapped ${done.rewrapped.length} data keys; ${done.current.length} were current`);
    for (const { id, trouble } of done.failed) print.note(`data key ${id} was left as it is: ${trouble}`);
  }
  if (done.failed.length > 0) throw new SilentFailure();
}

async function rotate(terminal: Terminal, args: KeyArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const { rotateKey } = await import('../compose/manage-keys.ts');
  const act = actOf('system:keys:rotate', args);
  const id = await withDatabase(config, (db) =>
    migrated(async () => rotateKey({ db, master: await masterOf(config, db), act }, 'dlq')),
  );
  const print = createPrinter(terminal);
  if (args.json === true) return print.json(JSON.stringify({ id }));
  print.line(`made data key ${id}; servers use it within 30 seconds`);
}

async function masterOf(config: Config, db: Queryable) {
  // An unavailable database is reported first, as by every command of the database.
  await db.query(sql`SELECT 1`);
  const { createMasterKey } = await import('../compose/manage-keys.ts');
  const master = createMasterKey(config.protect);
  if (master !== null) return master;
  throw new AppError('SYS_PLATFORM_NO_MASTER_KEY', 'semantic', 'protect.encrypt names no master key');
}

function actOf(action: Action, { reason = null }: Readonly<{ reason?: string | null | undefined }>): Act {
  const name = userInfo().username;
  return {
    actor: { type: 'cli', id: name, name, roles: [] },
    action,
    reason,
    request: { id: null, traceId: null, address: null, agent: null },
  };
}
