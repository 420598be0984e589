import { showFacts, type Fact } from '../output/facts.ts';
import { apiCommand } from '../slice/api-command.ts';

type Me = Readonly<{
  subject: string;
  name: string;
  type: string;
  roles: readonly string[];
  environment: string;
}>;

export const whoami = apiCommand<Me>({
  name: 'whoami',
  description: 'show as whom the server knows you, and your roles',
  route: 'GET /api/v1/me',
  examples: ['redrive whoami', 'redrive whoami --json | jq .permissions'],
  print({ subject, name, type, roles, environment }, { print }) {
    const facts: readonly Fact[] = [
      ['name', name],
      ['subject', subject],
      ['type', type],
      ['roles', roles.length === 0 ? 'none' : roles.join(', ')],
      ['environment', environment],
    ];
    showFacts(print, facts);
  },
});
