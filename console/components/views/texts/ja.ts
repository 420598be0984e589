import { formatCount } from '../../../lib/sizes.ts';
import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  views: 'ビュー',
  saveView: 'ビューを保存…',
  savedViews: 'この一覧の保存済みビュー',
  own: '自分のビュー',
  shared: '共有ビュー',
  by: (name) => `作成者: ${name}`,
  noViews: 'この一覧の保存済みビューはありません',
  noViewsHint: 'フィルターを適用し、名前を付けて保存してください。',
  wholeList: 'フィルターなし',
  saveTitle: 'このビューを保存',
  saveAction: '保存',
  saves: 'この一覧のアドレスを保存します:',
  name: '名前',
  share: 'このコンソールの利用者全員と共有する',
  shareRefused: '共有できません:',
  saved: (name) => `「${name}」として保存しました。`,
  alreadySaved: (name) => `このアドレスは「${name}」としてすでに保存されています。`,
  tooLong: (length, most) =>
    `フィルターが長すぎるため保存できません。アドレスは ${formatCount(length)} 文字ですが、上限は ${formatCount(most)} 文字です。`,
  rename: (name) => `「${name}」の名前を変更`,
  renameTitle: 'ビューの名前を変更',
  renameAction: '名前を変更',
  renamed: (name) => `名前を「${name}」に変更しました。`,
  shareView: (name) => `「${name}」を共有`,
  unshareView: (name) => `「${name}」の共有を解除`,
  nowShared: (name) => `「${name}」を共有しました。`,
  nowOwn: (name) => `「${name}」を自分だけのビューにしました。`,
  remove: (name) => `「${name}」を削除`,
  removed: (name) => `「${name}」を削除しました。`,
};
