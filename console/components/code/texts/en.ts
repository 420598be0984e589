import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  find: 'Find',
  fold: 'Fold',
  unfold: 'Unfold',
  next: 'next',
  previous: 'previous',
  all: 'all',
  matchCase: 'match case',
  regexp: 'regular expression',
  byWord: 'whole words',
  close: 'close',
  currentMatch: 'current match',
  onLine: 'on line',
  foldedCode: 'folded',
  foldLine: 'Fold line',
  unfoldLine: 'Unfold line',
  unchangedLines: '$ unchanged lines',
  controlCharacter: 'Control character',
} as const satisfies Texts;
