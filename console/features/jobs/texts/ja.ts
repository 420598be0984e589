import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'ジョブ',
  jobs: 'ジョブ',
  job: 'ジョブ',
  queues: 'キュー',
  schedules: 'スケジュール',
};
