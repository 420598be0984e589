import type { TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  find: '検索',
  fold: '折りたたむ',
  unfold: '展開する',
  next: '次へ',
  previous: '前へ',
  all: 'すべて',
  matchCase: '大文字と小文字を区別',
  regexp: '正規表現',
  byWord: '単語単位',
  close: '閉じる',
  currentMatch: '現在の一致',
  onLine: '行',
  foldedCode: '折りたたみ',
  foldLine: '行を折りたたむ',
  unfoldLine: '行を展開する',
  unchangedLines: '変更のない $ 行',
  controlCharacter: '制御文字',
};
