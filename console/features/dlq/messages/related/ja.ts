import type { TextsLike } from '../../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  sameKey: '同じキー',
  sameTrace: '同じトレース',
  noKey: 'キーがないか、テキストではありません。',
  noTrace: '表示できる traceparent ヘッダーがありません。',
  traceHidden: 'ヘッダーの表示には権限 dlq:payloads:view が必要です。',
  newer: (count) => `このキーの新しいメッセージ ${count} 件も失敗しています。`,
  noNewer: 'このトピックとキーの新しいメッセージは失敗していません。',
  showAll: 'このキーのメッセージをすべて表示',
  nothing: '他には見つかりませんでした。',
  unavailable: (slices) => `検索できなかった対象: ${slices}`,
  item: '項目',
  status: '状態',
  where: '場所',
  when: '日時',
  message: 'メッセージ',
  redrive: 'リドライブ',
  order: 'オーダー',
  job: 'ジョブ',
  saga: 'サーガ',
};
