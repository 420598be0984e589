import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  protection: '保護',
  covered: '一部はサーバーの規則で保護され、[masked] と表示されます。',
  reveal: '開示…',
  revealTitle: '保護された部分の開示',
  revealAction: '開示する',
  revealConsequence:
    '保護された部分を、このページを離れるまで表示します。開示とその理由は監査ログに記録されます。',
  reason: '理由',
  reasonHint: '監査ログに保存されます。',
  revealed: '保護された部分を、このページを離れるまで表示しています。開示は監査ログに記録されました。',
  hide: '隠す',
  maskedByRule: '規則で保護されています',
  maskedWithHash: '規則で保護されています。同じ印は同じ値を表します',
  wholeIsProtected: '全体が規則で保護されています。',
  downloadRefused: '一部が保護されています。マスク入りのファイルは本来の内容と取り違えられます。',
};
