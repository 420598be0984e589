import type { TextsLike } from '../../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  title: (id) => `オーダー ${id} を置き換える`,
  original: '元のリクエスト',
  corrected: '修正後のリクエスト',
  newKey: '新しい冪等キー',
  newKeyHint: '元とは異なるキー：8〜64 文字の表示可能な ASCII 文字',
  badKey: 'キーは 8〜64 文字の表示可能な ASCII 文字です。',
  sameKey: '元のオーダーと同じキーです。',
  notJson: (line, column) => `JSON として正しくありません（${line} 行 ${column} 列）。`,
  notObject: 'リクエストは JSON オブジェクトでなければなりません。',
  duplicateKeys: (keys) => `キーが重複しています：${keys}`,
  nothingChanged: '変更はありません。同じリクエストが新しいキーで送信されます。',
  checked: '宛先を確認しました。効果は発生していないか、対処済みです。',
  checkFirst: '先に宛先を確認してください。元のオーダーの効果が発生した可能性があります。',
  reason: '理由',
  reasonHint: '両方のオーダーの履歴と監査ログに残ります。',
  reasonRequired: '理由を入力してください。',
  keepsPlace: (key) =>
    `修正版は順序キー ${key} の中で元のオーダーの位置を引き継ぎます。後続のオーダーは、修正版の送信後に再開します。`,
  linked: '両方のオーダーが残り、相互にリンクされます。元のオーダーが再送されることはありません。',
  typeKey: (key) => `確認のため ${key} と入力してください`,
  send: (destination) => `置き換え → ${destination}`,
  back: 'オーダーに戻る',
  done: (id) => `オーダー ${id} で置き換えました。`,
  leave: '置き換えずに移動しますか？入力内容は失われます。',
};
