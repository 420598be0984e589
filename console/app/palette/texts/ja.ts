import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  title: '検索または実行',
  placeholder: 'ID、キー、トレース、ページ、操作',
  hint: 'ID、キー、トレース ID を貼り付けるか、行いたいことを入力します。Enter で選択中の項目を実行します。',
  found: '検索結果',
  actions: 'このページの操作',
  pages: '移動',
  recent: '最近の項目',
  nothing: '見つかりませんでした。キー、トレース ID、冪等キーは完全に入力してください。',
  searching: '検索中…',
  resultsOf: (count) => `${count} 件`,
  unavailable: (slices) => `検索できなかった対象: ${slices}`,
  failed: (message) => `検索に失敗しました: ${message}`,
  message: 'メッセージ',
  redrive: 'リドライブ',
  order: 'オーダー',
  job: 'ジョブ',
  saga: 'サーガ',
  byKey: 'キーで一致',
  byTrace: 'トレースで一致',
  archived: 'アーカイブ済み',
  dlq: 'デッドレター',
  outbox: 'オーダー',
  jobs: 'ジョブ',
};
