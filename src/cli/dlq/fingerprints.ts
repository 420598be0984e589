import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { createPrinter } from '../output/printer.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { migrated } from './archive.ts';

type DeriveArgs = ConfigArgs & Readonly<{ json?: boolean }>;

export function addFingerprintsCommand(dlq: Command, terminal: Terminal): void {
  const fingerprints = withExamples(
    dlq.command('fingerprints').description('fingerprints of stored messages'),
    'redrive dlq fingerprints derive',
  );
  withExamples(
    withConfigOptions(
      fingerprints
        .command('derive')
        .description('derive the fingerprints that are missing or of an older version; can be repeated'),
    ).option('--json', 'print the counts as JSON'),
    'redrive dlq fingerprints derive --config config.yaml',
  ).action((args: DeriveArgs) => derive(terminal, args));
}

async function derive(terminal: Terminal, args: DeriveArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const { deriveFingerprints, payloadsFor } = await import('../../compose.ts');
  let done = 0;
  const progress = {
    label: 'deriving',
    unit: 'messages',
    isQuiet: args.json === true,
    countDone: () => done,
    total: undefined,
  };
  const derived = await withDatabase(config, (db) =>
    migrated(() =>
      withProgress(terminal, progress, () =>
        deriveFingerprints({ db, payloads: payloadsFor(config, db) }, (count) => (done = count)),
      ),
    ),
  );
  const print = createPrinter(terminal);
  if (args.json === true) return print.json(JSON.stringify(derived));
  print.line(`derived the fingerprints of ${derived.changed} messages`);
  if (derived.skipped > 0)
    print.note(
      `${derived.skipped} messages were locked, or could not be decrypted; run the command again for them`,
    );
}
