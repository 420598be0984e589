import { formatCount } from '../../../lib/sizes.ts';
import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  views: 'Views',
  saveView: 'Save view…',
  savedViews: 'Saved views of this list',
  own: 'Yours',
  shared: 'Shared',
  by: (name: string) => `by ${name}`,
  noViews: 'No saved views of this list',
  noViewsHint: 'Apply a filter, then save it under a name.',
  wholeList: 'no filter',
  saveTitle: 'Save this view',
  saveAction: 'Save view',
  saves: 'Saves the address of this list:',
  name: 'Name',
  share: 'Share with everybody who uses this console',
  shareRefused: 'You cannot share it:',
  saved: (name: string) => `Saved as ${name}.`,
  alreadySaved: (name: string) => `This address is saved already as ${name}.`,
  tooLong: (length: number, most: number) =>
    `The filter is too long to be saved: the address has ${formatCount(length)} characters, at most ${formatCount(most)} are allowed.`,
  rename: (name: string) => `Rename ${name}`,
  renameTitle: 'Rename the view',
  renameAction: 'Rename',
  renamed: (name: string) => `Renamed to ${name}.`,
  shareView: (name: string) => `Share ${name}`,
  unshareView: (name: string) => `Stop sharing ${name}`,
  nowShared: (name: string) => `${name} is shared.`,
  nowOwn: (name: string) => `${name} is only yours.`,
  remove: (name: string) => `Delete ${name}`,
  removed: (name: string) => `Deleted ${name}.`,
} as const satisfies Texts;
