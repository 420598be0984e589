import type { Texts } from '../../lib/text/catalogue.ts';

export const en = {
  skipToContent: 'Skip to content',
  navigation: 'Main',
  notFound: 'There is no such page',
  notFoundHint: 'The address may be incomplete, or of another version of Redrive.',
  loginMissing: 'This server asks for a token',
  loginMissingHint:
    'Login by browser is not configured on this server. Use the command line: npx redrive --help',
  cannotStart: 'The console cannot start',
  tryAgain: 'Try again',
  environment: (name: string) => `Environment: ${name}`,
} as const satisfies Texts;
