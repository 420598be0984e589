import { formatCount } from '../../../lib/sizes.ts';
import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'アクティビティ',
  listCaption: '人とポリシーの操作（新しい順）',
  when: '日時',
  actor: '実行者',
  verb: '操作',
  object: '対象',
  outcome: '結果',
  reason: '理由',
  operation: '一連の操作',
  showOperation: 'すべて表示',
  showOperationOf: (verb) => `この一連の操作をすべて表示: ${verb}`,
  items: (count) => `${formatCount(count)} 件`,
  nothing: 'まだ操作はありません',
  nothingHint: '人、API キー、再試行ポリシーによる変更がすべてここに表示されます。',
  auditHint: '拒否された要求、アドレス、シールは次のコマンドで確認できます:',
};
