import type { TextsLike } from '../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  skipToContent: '本文へ移動',
  navigation: 'メイン',
  notFound: 'ページが見つかりません',
  notFoundHint: 'アドレスが不完全か、別のバージョンの Redrive のものです。',
  loginMissing: 'このサーバーにはトークンが必要です',
  loginMissingHint:
    'ブラウザーでのログインは設定されていません。コマンドラインを使ってください: npx redrive --help',
  cannotStart: 'コンソールを開始できません',
  tryAgain: '再試行',
  environment: (name) => `環境: ${name}`,
};
