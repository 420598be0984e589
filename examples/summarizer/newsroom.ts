import type { Chance } from '../orders-pipeline/chance.ts';
import { writeArticle, type Article, type Kind } from './articles.ts';
import type { QueueView, RedriveClient } from './redrive-client.ts';

export type NewsroomOptions = Readonly<{
  redrive: RedriveClient;
  chance: Chance;
  signal: AbortSignal;
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Told once, of a job that needs attention. */
  onDead: (jobId: string) => void;
}>;

export const turnMs = 1000;
/** Whoever looks at the demo looks in its first ten minutes; after that it need not fill the disk. */
const turnsInHaste = 600;
const slowTurnMs = 10_000;
/** Now and then a whole edition comes at once. */
const editionEvery = 30;
const editionSize = 12;
/** Nobody has to decide about more than so many jobs, and no more than so many wait. */
const maxNeedingPerson = 10;
const maxWaiting = 100;

/** A newsroom that has its articles summarised: it adds a job for each, and leaves the rest to Redrive. */
export async function runNewsroom(options: NewsroomOptions): Promise<void> {
  const { redrive, chance, signal, sleep, onDead } = options;
  const run = Math.floor(chance('run') * 0x1000000)
    .toString(16)
    .padStart(6, '0');
  /** With the article as its dedupe key it is one job, however often it is added. */
  const hasSummarized = async (article: Article): Promise<void> => {
    while (!signal.aborted && (await redrive.enqueue(article)) === 'later') await sleep(turnMs, signal);
  };
  let view: QueueView = { waiting: 0, needingPerson: 0, deadJobId: null };
  let wasTold = false;
  let written = 0;
  for (let turn = 1; !signal.aborted; turn += 1) {
    if (turn % 5 === 0) view = await redrive.look().catch(() => view);
    if (view.deadJobId !== null && !wasTold) {
      wasTold = true;
      onDead(view.deadJobId);
    }
    const count = turn % editionEvery === 0 ? editionSize : 1;
    for (let n = 0; n < count && view.waiting < maxWaiting; n += 1) {
      written += 1;
      const kind = view.needingPerson < maxNeedingPerson ? kindOf(written) : 'news';
      await hasSummarized(writeArticle({ run, number: written, kind, chance }));
    }
    await sleep(turn < turnsInHaste ? turnMs : slowTurnMs, signal);
  }
}

function kindOf(number: number): Kind {
  if (number % 10 === 4) return 'long-read';
  return number % 40 === 39 ? 'withdrawn' : 'news';
}
