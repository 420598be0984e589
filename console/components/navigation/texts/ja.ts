import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  cannotShow: (name) => `${name}を表示できません`,
  faultOfConsole: 'コンソールの不具合です。サーバーには影響ありません。',
  tryAgain: '再試行',
};
