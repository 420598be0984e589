import { formatCount } from '../../../../lib/sizes.ts';
import type { TextsLike } from '../../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

const sagas = (count: number): string => `サーガ ${formatCount(count)} 件`;

export const ja: TextsLike<typeof en> = {
  caption: 'サーガ (新しい順)',
  started: '開始',
  waitingFor: '待機対象',
  reload: '再読み込み',
  onlyStuck: '停止中',
  noSagas: 'サーガはありません',
  noSagasHint: 'まだ開始されていないか、終了したものはすべてアーカイブされています。',
  howToStart: 'ワークフローを登録し、サーガを開始してください:',
  preview: 'プレビュー',
  open: '開く',
  retryStuck: (count) =>
    count === null ? '停止中のものを再試行…' : `${formatCount(count)} 件のうち停止中のものを再試行…`,
  cannotRetry:
    '一致するすべてを再試行できるのは、フィルターが workflow、step、is:stuck、since、until だけで、除外した行がない場合に限ります。',
  tooManyNamed: '個別に選んで再試行できるのは 1 000 件までです。',
  retryTitle: (count) => `${count}を再試行`,
  retryAction: (count) => `${count}を再試行`,
  sagasOf: sagas,
  atLeast: (count) => `${count}以上`,
  noneStuck: '停止中のものがないため、再試行するものはありません。',
  retryConsequence: 'それぞれの停止しているステップを、新しい試行回数と同じ冪等キーでもう一度呼び出します。',
  notRetryable: (count) =>
    `${sagas(count)}はスキップされます。呼び出す取り消しがないか、サービスを二度呼び出せないためです。`,
  sample: '先頭の数件:',
  reason: '理由',
  reasonHint: '各サーガのログと監査ログに記録されます。',
  retried: (count) => `${sagas(count)}を再試行しました。`,
  skipped: (count, why) => `${formatCount(count)} 件をスキップしました (${why})。`,
  remaining: 'まだ一致するものがあります。残りはもう一度実行してください。',
  busy: '別のトランザクションがロック中',
  changed: '停止の状態が変わった',
  no_undo: '呼び出す取り消しがない',
  not_idempotent: '二度呼び出せない',
  failedRetry: '失敗 (ログを参照)',
};
