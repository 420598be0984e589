import type { Texts } from '../../../../lib/text/catalogue.ts';

export const en = {
  title: (id: string) => `Supersede order ${id}`,
  original: 'Original request',
  corrected: 'Corrected request',
  newKey: 'New idempotency key',
  newKeyHint: 'Another key than that of the original: 8 to 64 visible ASCII characters.',
  badKey: 'A key has 8 to 64 visible ASCII characters.',
  sameKey: 'The original has this key.',
  notJson: (line: number, column: number) => `Not valid JSON: line ${line}, column ${column}.`,
  notObject: 'A request is a JSON object.',
  duplicateKeys: (keys: string) => `Duplicate keys: ${keys}.`,
  nothingChanged: 'Nothing is changed: the same request is sent under a new key.',
  checked: 'I have checked the destination: the effect did not happen, or has been dealt with.',
  checkFirst: 'Check the destination first: the effect of the original may have happened.',
  reason: 'Reason',
  reasonHint: 'Kept in the history of both orders and in the audit log.',
  reasonRequired: 'A reason is required.',
  keepsPlace: (key: string) =>
    `The corrected order takes the place of the original in the ordering key ${key}; what waits behind it goes on after it was sent.`,
  linked: 'Both orders stay and are linked. The original is never sent again.',
  typeKey: (key: string) => `Type ${key} to confirm`,
  send: (destination: string) => `Supersede → ${destination}`,
  back: 'Back to the order',
  done: (id: string) => `Superseded by order ${id}.`,
  leave: 'Leave without superseding? What you have entered is lost.',
} as const satisfies Texts;
