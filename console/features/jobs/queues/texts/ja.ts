import { formatCount } from '../../../../lib/sizes.ts';
import type { TextsLike } from '../../../../lib/text/catalogue.ts';
import type { en } from './en.ts';

export const ja: TextsLike<typeof en> = {
  queues: 'キュー',
  listCaption: 'キュー(名前順)',
  noQueues: 'キューはありません',
  noQueuesHint: '設定されたキューも、ジョブのあるキューもありません。',
  queue: 'キュー',
  state: '状態',
  depth: '深さ',
  depthOf: (parts) => `ステータス別のジョブ: ${parts}`,
  waiting: '待機',
  running: '実行中',
  dead: 'デッド',
  lag: '遅延',
  throughput: '完了(30 分)',
  throughputOf: (count, peak) =>
    `30 分間に ${formatCount(count)} 件完了、1 分間に最大 ${formatCount(peak)} 件`,
  notKept: '保存なし',
  partial: '完了件数は新しい 25,000 件のジョブだけを数えています。実際はそれより多くあります。',
  rate: 'レート制限',
  rateOf: (count, seconds) => `${seconds} あたり ${formatCount(count)}`,
  runningOf: (running, limit) => `${formatCount(limit)} 中 ${running}`,
  noLimit: '–',
  paused: (by, reason) => `一時停止中${by === null ? '' : `(${by})`}${reason === null ? '' : `: ${reason}`}`,
  targetDown: (reason) => `送信先が応答しません: ${reason}`,
  byPush: '送信先へプッシュ',
  byWorkers: 'ワーカーが取得',
  action: '操作',
  pause: '一時停止…',
  resume: '再開…',
  pauseTitle: (queue) => `${queue} を一時停止`,
  resumeTitle: (queue) => `${queue} を再開`,
  pauseConsequence:
    'このキューのジョブは新たに開始されません。実行中のジョブは完了し、待機中のジョブは順番を保ちます。',
  resumeConsequence: 'ワーカーがジョブの実行を再開します。',
  reason: '理由',
  reasonHint: 'なぜ動いていないのかを知りたい人のために、キューの横に表示されます。',
  pausedToast: (queue) => `${queue} を一時停止しました。`,
  resumedToast: (queue) => `${queue} を再開しました。`,
};
