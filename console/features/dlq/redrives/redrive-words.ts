import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import type { en } from './texts/en.ts';

type T = TextsLike<typeof en>;

/** The state in one sentence that says what happens next. */
export function sentenceOf(redrive: Pick<Redrive, 'state' | 'watch_until'>, t: T): string {
  switch (redrive.state) {
    case 'planning':
      return t.sentencePlanning;
    case 'planned':
      return t.sentencePlanned;
    case 'awaiting_approval':
      return t.sentenceAwaitingApproval;
    case 'running':
      return redrive.watch_until === null ? t.sentenceRunning : t.sentenceWatching;
    case 'paused':
      return t.sentencePaused;
    case 'stopped':
      return t.sentenceStopped;
    case 'finished':
      return t.sentenceFinished;
    case 'cancelled':
      return t.sentenceCancelled;
    case 'failed':
      return t.sentenceFailed;
    case 'expired':
      return t.sentenceExpired;
    default:
      // A state of a later version of the server.
      return '';
  }
}

export function exclusionText(reason: Redrive['excluded'][number]['reason'], t: T): string {
  return reason === 'dead' ? t.isDead : t[reason];
}
