import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'ジョブ',
  jobs: 'ジョブ',
  queues: 'キュー',
  schedules: 'スケジュール',
};
