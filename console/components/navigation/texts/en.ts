import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  cannotShow: (name: string) => `Cannot show ${name}`,
  faultOfConsole: 'This is a fault of the console. The server is not affected.',
  tryAgain: 'Try again',
} as const satisfies Texts;
