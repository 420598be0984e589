import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { addActionCommands } from './act.ts';
import { addEnqueueCommand } from './enqueue.ts';
import { addListCommands } from './list.ts';
import { addQueueCommands } from './queues.ts';
import { addShowCommand } from './show.ts';

export function addJobsCommand(program: Command, terminal: Terminal): void {
  const jobs = withExamples(
    program.command('jobs').description('jobs, their queues, and dead letters among them'),
    'redrive jobs queues',
    'redrive jobs dead',
    "redrive jobs requeue --queue summarize --error 'timeout:' --preview",
  );
  addQueueCommands(jobs, terminal);
  addListCommands(jobs, terminal);
  addShowCommand(jobs, terminal);
  addEnqueueCommand(jobs, terminal);
  addActionCommands(jobs, terminal);
}
