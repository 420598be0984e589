import { formatCount } from '../../../lib/sizes.ts';
import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  live: 'ライブ',
  connecting: '接続中',
  reconnecting: '再接続中',
  polling: '5 秒ごとに確認',
  stale: '更新停止',
  paused: '一時停止中',
  heldSelection: (count) => (count === 0 ? '保留: 選択中' : `保留: ${formatCount(count)} 件を選択中`),
  heldDialog: '保留: ダイアログ表示中',
  heldEdit: '保留: 編集中',
  heldText: '保留: テキスト選択中',
  liveHint: '画面の内容は自動的に更新されます。',
  connectingHint: 'サーバーからの最初のイベントを待っています。',
  reconnectingHint: 'サーバーとの接続が切れました。画面の内容は古い可能性があります。',
  pollingHint: 'イベントが届きません (プロキシが原因の可能性があります)。5 秒ごとに確認しています。',
  staleHint: 'サーバーからの応答がしばらくありません。画面の内容は正しくない可能性があります。',
  pausedHint: '再開するまで画面の内容は変わりません。',
  heldHint: '操作が終わるまで画面の内容は変わりません。',
  age: (age) => `サーバーからの最後の応答: ${age}前`,
  pause: '更新を一時停止',
  resume: '更新を再開',
};
