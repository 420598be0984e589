import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'デッドレター',
  groups: 'グループ',
  group: '失敗のグループ',
  messages: 'メッセージ',
  edit: '編集',
  message: 'メッセージ',
  topics: 'トピック',
  redrives: 'リドライブ',
  newRedrive: 'リドライブの計画',
  redrive: 'リドライブ',
};
