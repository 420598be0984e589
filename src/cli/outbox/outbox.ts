import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { addActionCommands } from './act.ts';
import { addAddCommand } from './add.ts';
import { addDestinationsCommand } from './destinations.ts';
import { addLedgerCommand } from './ledger.ts';
import { addListCommand } from './list.ts';
import { addShowCommand } from './show.ts';

export function addOutboxCommand(program: Command, terminal: Terminal): void {
  const outbox = withExamples(
    program
      .command('outbox')
      .description('orders to the outside: place them, see them, decide about dead ones'),
    'redrive outbox list --needs-person',
    'redrive outbox show 1042',
    'redrive outbox ledger order-2026-000117',
  );
  outbox.commandsGroup('Look:');
  addListCommand(outbox, terminal);
  addShowCommand(outbox, terminal);
  addLedgerCommand(outbox, terminal);
  addDestinationsCommand(outbox, terminal);
  outbox.commandsGroup('Act:');
  addAddCommand(outbox, terminal);
  addActionCommands(outbox, terminal);
}
