import { pick, type Chance } from '../orders-pipeline/chance.ts';

/** What the newsroom has written, and wants in a sentence. */
export type Article = Readonly<{ article_id: string; title: string; text: string }>;

/** `long-read`: more than the summariser can do in its time. `withdrawn`: it is not there any more. */
export type Kind = 'news' | 'long-read' | 'withdrawn';

const subjects = ['The port', 'The central bank', 'A small town', 'The orchestra', 'A courier firm'] as const;
const deeds = [
  'opens at night',
  'counts again',
  'paints its bridges',
  'sells its trams',
  'plants trees',
] as const;
const reasons = ['after a long debate', 'for the first time since 1987', 'against all advice'] as const;
const filler = 'Nobody was available for comment. Further meetings are planned. The weather stayed fine.';

const longReadRepeats = 8;

export function writeArticle(
  of: Readonly<{ run: string; number: number; kind: Kind; chance: Chance }>,
): Article {
  const id = `${of.kind}-${of.run}-${String(of.number).padStart(4, '0')}`;
  const title = `${pick(subjects, of.chance(`${id} who`))} ${pick(deeds, of.chance(`${id} what`))}`;
  const lead = `${title} ${pick(reasons, of.chance(`${id} why`))}.`;
  const rest = Array.from({ length: of.kind === 'long-read' ? longReadRepeats : 1 }, () => filler);
  return { article_id: id, title, text: [lead, ...rest].join(' ') };
}

export function kindOf(articleId: string): Kind {
  if (articleId.startsWith('long-read-')) return 'long-read';
  return articleId.startsWith('withdrawn-') ? 'withdrawn' : 'news';
}

/** The first sentence, and how much it stands for. */
export function summaryOf({ text }: Article): Readonly<{ summary: string; words: number }> {
  const [first = ''] = text.split(/(?<=[.!?])\s/);
  return { summary: first, words: text.split(/\s+/).length };
}
