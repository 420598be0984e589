import { formatCount } from '../../../../lib/sizes.ts';
import type { Texts } from '../../../../lib/text/catalogue.ts';

const sagas = (count: number): string => (count === 1 ? '1 saga' : `${formatCount(count)} sagas`);

export const en = {
  caption: 'Sagas, newest first',
  started: 'Started',
  waitingFor: 'Waiting for',
  reload: 'Reload',
  onlyStuck: 'Stuck',
  noSagas: 'No sagas',
  noSagasHint: 'None was started, or all that have ended are archived.',
  howToStart: 'Register a workflow, then start a saga of it:',
  preview: 'Preview',
  open: 'Open',
  retryStuck: (count: number | null) =>
    count === null ? 'Retry the stuck ones…' : `Retry the stuck ones of ${formatCount(count)}…`,
  cannotRetry:
    'All that match can be retried only if the filter has nothing but workflow, step, is:stuck, since and until, and no row is left out.',
  tooManyNamed: 'At most 1 000 sagas can be retried one by one.',
  retryTitle: (count: string) => `Retry ${count}`,
  retryAction: (count: string) => `Retry ${count}`,
  sagasOf: sagas,
  atLeast: (count: string) => `at least ${count}`,
  noneStuck: 'None of them is stuck, so there is nothing to retry.',
  retryConsequence:
    'The step at which each of them is stuck is called again, with a new budget of attempts and the same idempotency key.',
  notRetryable: (count: number) =>
    `${sagas(count)} will be skipped: there is no undo to call, or the service must not be called twice.`,
  sample: 'The first of them:',
  reason: 'Reason',
  reasonHint: 'Stored in the log of each saga and in the audit log.',
  retried: (count: number) => `Retried ${sagas(count)}.`,
  skipped: (count: number, why: string) => `${formatCount(count)} skipped (${why}).`,
  remaining: 'More match: repeat it for the rest.',
  busy: 'locked by another transaction',
  changed: 'no longer stuck like that',
  no_undo: 'no undo to call',
  not_idempotent: 'must not be called twice',
  failedRetry: 'failed, see the log',
} as const satisfies Texts;
