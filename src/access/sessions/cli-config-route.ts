import { Type } from 'typebox';
import { AppError } from '../../kernel/errors.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';

/** What `redrive login` needs to know; nothing of it is a secret. */
export type CliLogin = Readonly<{
  issuer: string;
  audience: string;
  clientId: string;
  scopes: readonly string[];
}>;

export function addCliConfigRoute(app: HttpApp, login: CliLogin | null): void {
  app.get(
    '/auth/config',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'getLoginConfig',
        summary: 'Where the command line logs in',
        description: 'For the device flow of `redrive login`. 404 if `auth.cli` is not configured.',
        errors: [404],
        response: {
          200: Type.Object({
            issuer: Type.String({ examples: ['https://idp.example.com/realms/main'] }),
            cli_client_id: Type.String({ examples: ['redrive-cli'] }),
            audience: Type.String({ examples: ['redrive'] }),
            scopes: Type.Array(Type.String({ examples: ['offline_access'] })),
          }),
        },
      },
    },
    async (_request, reply) => {
      if (login === null)
        throw new AppError(
          'SYS_ACCESS_NOT_FOUND',
          'not_found',
          'this server has no logins for the command line: see auth.cli, or use a token or an API key',
        );
      const { issuer, audience, clientId, scopes } = login;
      return reply.send({ issuer, cli_client_id: clientId, audience, scopes: [...scopes] });
    },
  );
}
