import type { TextsLike } from '../../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  schedules: 'スケジュール',
  listCaption: 'スケジュール(名前順)',
  noSchedules: 'スケジュールは設定されていません',
  noSchedulesHint: 'スケジュールは、cron 式の時刻にジョブをキューへ追加します:',
  name: '名前',
  schedule: 'スケジュール',
  zone: 'タイムゾーン',
  queue: 'キュー',
  next: '次回',
  never: 'なし',
  notSeen: 'どのワーカーもまだ認識していないため、実行されません',
  due: '予定時刻を過ぎても実行されていません:',
  last: '前回',
  neverRan: 'まだありません',
  lastJob: 'そのジョブ',
  jobGone: '削除済み',
};
