import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  message: 'メッセージ',
  redrive: 'リドライブ',
  topic: 'トピック',
  source: 'ソース',
  policy: 'ポリシー',
  erasure: 'メッセージ',
  order: 'オーダー',
  job: 'ジョブ',
  queue: 'キュー',
  saga: 'サーガ',
  workflow: 'ワークフロー',
  apiKey: 'API キー',
  session: 'セッション',
  auditMonth: '監査ログ',
  dataKey: 'データキー',
  other: '',
};
