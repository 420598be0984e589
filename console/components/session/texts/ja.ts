import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  needsPermission: (permission, roles) =>
    `権限 ${permission} が必要です。${roles === '' ? 'ロールがありません。' : `現在のロール (${roles}) には含まれていません。`}`,
};
