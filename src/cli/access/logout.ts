import type { Command } from 'commander';
import { serverUrl, urlOption, type ApiArgs } from '../api/api-options.ts';
import { openIssuerClient } from '../api/issuer-client.ts';
import { openStoredLogins } from '../api/stored-logins.ts';
import { withExamples } from '../examples.ts';
import { messageOf } from '../../kernel/errors.ts';
import { createPrinter } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';

/** Forgets the login first, so that it is gone from this machine whatever the issuer says. */
export function addLogoutCommand(program: Command, terminal: Terminal): void {
  withExamples(
    urlOption(program.command('logout').description('end the login at a server')),
    'redrive logout --url https://redrive.example.com',
  ).action(async (args: Pick<ApiArgs, 'url'>) => {
    const url = serverUrl(terminal.env, args);
    const print = createPrinter(terminal);
    const logins = openStoredLogins(terminal.env);
    const login = logins.find(url);
    if (login === undefined) return print.note(`not logged in to ${url.href}`);
    logins.remove(url);
    try {
      await (await openIssuerClient(login)).revoke(login);
    } catch (error) {
      print.note(`the issuer was not told: ${messageOf(error)}`);
    }
    print.line(`Logged out of ${url.href}`);
  });
}
