import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { addActionCommands } from './act.ts';
import { addArchiveCommand } from './archive.ts';
import { addListCommands } from './list.ts';
import { addRawCommand } from './raw.ts';
import { addRetryCommands } from './retry.ts';
import { addShowCommands } from './show.ts';
import { addSourceCommands } from './sources.ts';

export function addDlqCommand(program: Command, terminal: Terminal): void {
  const dlq = withExamples(
    program.command('dlq').description('dead letters: see them, retry them, give up on them'),
    'redrive dlq topics',
    'redrive dlq list orders.v1 --status DEAD',
    'redrive dlq retry-all orders.v1 --url http://redrive.example.com:8080',
  );
  dlq.commandsGroup('Look:');
  addListCommands(dlq, terminal);
  addShowCommands(dlq, terminal);
  addRawCommand(dlq, terminal);
  dlq.commandsGroup('Act:');
  addRetryCommands(dlq, terminal);
  addActionCommands(dlq, terminal);
  dlq.commandsGroup('Dead-letter topics being read:');
  addSourceCommands(dlq, terminal);
  dlq.commandsGroup('In the database, without a server:');
  addArchiveCommand(dlq, terminal);
}
