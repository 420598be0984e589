import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { addActionCommands } from './act.ts';
import { addCheckCommand } from './check.ts';
import { addListCommand } from './list.ts';
import { addProbeCommand } from './probe/probe-command.ts';
import { addShowCommand } from './show.ts';
import { addStartCommand } from './start.ts';
import { addWorkflowCommands } from './workflows.ts';

export function addSagaCommand(program: Command, terminal: Terminal): void {
  const saga = withExamples(
    program.command('saga').description('workflows of several services, done as a whole or undone'),
    'redrive saga check workflows/place-order.yaml',
    'redrive saga list --needs-person',
    "redrive saga retry 1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11 charge --reason 'it is back'",
  );
  addCheckCommand(saga, terminal);
  addProbeCommand(saga, terminal);
  addWorkflowCommands(saga, terminal);
  addStartCommand(saga, terminal);
  addListCommand(saga, terminal);
  addShowCommand(saga, terminal);
  addActionCommands(saga, terminal);
}
