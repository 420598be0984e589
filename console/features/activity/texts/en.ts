import { formatCount } from '../../../lib/sizes.ts';
import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Activity',
  listCaption: 'What people and policies did, newest first',
  when: 'When',
  actor: 'Who',
  verb: 'Did',
  object: 'To',
  outcome: 'Outcome',
  reason: 'Reason',
  operation: 'Operation',
  showOperation: 'all of it',
  showOperationOf: (verb: string) => `All acts of this operation: ${verb}`,
  items: (count: number) => (count === 1 ? '1 item' : `${formatCount(count)} items`),
  nothing: 'Nobody has done anything yet',
  nothingHint: 'Every change that a person, an API key or a retry policy makes is listed here.',
  auditHint: 'Requests that were refused, with addresses and seals:',
} as const satisfies Texts;
