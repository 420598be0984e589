import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  protection: 'Protection',
  covered: 'Parts are protected by a rule of the server and shown as [masked].',
  reveal: 'Reveal…',
  revealTitle: 'Reveal protected parts',
  revealAction: 'Reveal',
  revealConsequence:
    'Protected parts are shown on this page until you leave it. The reveal and its reason are recorded in the audit log.',
  reason: 'Reason',
  reasonHint: 'Stored in the audit log.',
  revealed: 'Protected parts are shown until you leave this page. The reveal is in the audit log.',
  hide: 'Hide',
  maskedByRule: 'Protected by a rule',
  maskedWithHash: 'Protected by a rule; equal marks stand for equal values',
  wholeIsProtected: 'All of it is protected by a rule.',
  downloadRefused: 'Parts are protected: a file with masks in it would be taken for the record.',
} as const satisfies Texts;
