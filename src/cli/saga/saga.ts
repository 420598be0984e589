import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { addCheckCommand } from './check.ts';

export function addSagaCommand(program: Command, terminal: Terminal): void {
  const saga = withExamples(
    program.command('saga').description('workflows of several services, done as a whole or undone'),
    'redrive saga check workflows/place-order.yaml',
  );
  addCheckCommand(saga, terminal);
}
