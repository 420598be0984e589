import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  area: 'アウトボックス',
  orders: 'オーダー',
  destinations: '宛先',
  ledger: '台帳',
};
