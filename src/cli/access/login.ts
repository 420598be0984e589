import type { Command } from 'commander';
import type { ApiArgs } from '../api/api-options.ts';
import { serverUrl, tokenOf, urlOption } from '../api/api-options.ts';
import { createApiClient } from '../api/api-client.ts';
import { openIssuerClient } from '../api/issuer-client.ts';
import { openStoredLogins } from '../api/stored-logins.ts';
import { withExamples } from '../examples.ts';
import { UsageError } from '../exit-code.ts';
import { createPrinter } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';

type LoginConfig = Readonly<{
  issuer: string;
  cli_client_id: string;
  audience: string;
  scopes: readonly string[];
}>;

/** By the device flow (RFC 8628): the user agrees in any browser, on this machine or another one. */
export function addLoginCommand(program: Command, terminal: Terminal): void {
  withExamples(
    urlOption(
      program
        .command('login')
        .description('log in to a server in the browser; commands then use the login until `redrive logout`'),
    ),
    'redrive login --url https://redrive.example.com',
  ).action(async (args: Pick<ApiArgs, 'url'>) => {
    const { env, interrupted } = terminal;
    const url = serverUrl(env, args);
    if (tokenOf(env) !== undefined)
      throw new UsageError(
        'REDRIVE_TOKEN or REDRIVE_API_KEY is set, and would be used instead of the login: unset it',
      );
    const print = createPrinter(terminal);
    const logins = openStoredLogins(env);
    const ask = createApiClient({ url, actor: 'login' });
    const { value } = await ask.call<LoginConfig>({ id: 'getLoginConfig', input: {} });
    const { issuer, cli_client_id: clientId, audience, scopes } = value;
    const client = await openIssuerClient({ issuer, clientId });
    const { shown, finish } = await client.begin({ scopes, audience });
    print.line(`Open ${shown.verification_uri_complete ?? shown.verification_uri}`);
    print.line(`and check that it shows the code ${shown.user_code}`);
    const login = await finish(interrupted);
    logins.put(url, login);
    const token = async () => login.accessToken;
    const me = await createApiClient({ url, actor: 'login', token }).call<Readonly<{ name: string }>>({
      id: 'getMe',
      input: {},
    });
    print.line(`Logged in to ${url.href} as ${me.value.name}`);
  });
}
