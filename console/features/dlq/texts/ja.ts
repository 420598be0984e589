import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'デッドレター',
  messages: 'メッセージ',
  status: '状態',
  topic: 'トピック',
  error: 'エラー',
};
