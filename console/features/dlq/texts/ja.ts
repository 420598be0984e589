import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'デッドレター',
  groups: 'グループ',
  group: '失敗のグループ',
  messages: 'メッセージ',
  topics: 'トピック',
  redrives: 'リドライブ',
};
