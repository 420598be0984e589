import { formatCount } from '../../../lib/sizes.ts';
import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  live: 'Live',
  connecting: 'Connecting',
  reconnecting: 'Reconnecting',
  polling: 'Polling 5 s',
  stale: 'Stale',
  paused: 'Paused by you',
  heldSelection: (count: number) =>
    count === 0 ? 'Held: selection' : `Held: ${formatCount(count)} selected`,
  heldDialog: 'Held: open dialog',
  heldEdit: 'Held: unsaved edit',
  heldText: 'Held: selected text',
  liveHint: 'What is on screen is kept up to date.',
  connectingHint: 'The page waits for the first event of the server.',
  reconnectingHint: 'The connection to the server was lost. What is on screen may be old.',
  pollingHint: 'Events do not come through, perhaps because of a proxy. The console asks every 5 s.',
  staleHint: 'The server has not been heard for a while. What is on screen may be wrong.',
  pausedHint: 'What is on screen stays as it is until you resume.',
  heldHint: 'What is on screen stays as it is until you have finished.',
  age: (age: string) => `Server last heard ${age} ago.`,
  pause: 'Pause updates',
  resume: 'Resume updates',
} as const satisfies Texts;
