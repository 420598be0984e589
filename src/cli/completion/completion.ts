import { Argument, type Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import { bashScript } from './bash-script.ts';
import { commandTree, type CompletedCommand } from './command-tree.ts';
import { fishScript } from './fish-script.ts';
import { zshScript } from './zsh-script.ts';

const scripts: Readonly<Record<string, (root: CompletedCommand) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

const install = `
To complete commands in every new shell:
  bash  add to ~/.bashrc:
        source <(redrive completion bash)
  zsh   add to ~/.zshrc, after compinit:
        source <(redrive completion zsh)
  fish  run once:
        redrive completion fish > ~/.config/fish/completions/redrive.fish`;

/** The script knows all commands, so completing needs neither Node nor a server. */
export function addCompletionCommand(program: Command, terminal: Terminal): void {
  const completion = program
    .command('completion')
    .description('print a completion script for the shell')
    .addArgument(new Argument('<shell>', 'shell').choices(Object.keys(scripts)))
    .addHelpText('after', install)
    .action((shell: string) => {
      const script = scripts[shell];
      if (script !== undefined) terminal.stdout.write(script(commandTree(program)));
    });
  withExamples(
    completion,
    'redrive completion bash > /etc/bash_completion.d/redrive',
    'source <(redrive completion zsh)',
  );
}
