import { formatTimestamp } from '../kernel/timestamp.ts';
import type { GroupName, Told } from './grouping.ts';
import { headline } from './headline.ts';
import { linksOf } from './links.ts';
import { oneLine } from './one-line.ts';

/** Which of somebody's systems is speaking. */
export type Speaker = Readonly<{ name: string; environment: string; publicUrl: string | undefined }>;

/** One thing that a person is told; what is told is cleaned and cut already. */
export type Message = Readonly<{ id: string; atMs: number; about: GroupName; told: Told }>;

export const MAX_SUBJECT = 200;
export const MAX_ITEM_ID = 100;
export const MAX_SUMMARY = 200;
const MAX_HEADLINE = 300;

/**
 * What a webhook gets. Fields may be added under the same version; none changes its meaning, and none goes.
 * The same `id` twice is the same message: its first answer was lost.
 */
export function webhookBody(speaker: Speaker, { id, atMs, about, told }: Message): object {
  const links = linksOf(about, speaker.publicUrl);
  return {
    version: 1,
    id,
    at: instant(atMs),
    source: { name: speaker.name, environment: speaker.environment },
    slice: about.slice,
    kind: about.kind,
    subject: about.subject,
    headline: headline(about, told),
    is_summary: told.isSummary,
    count: told.count,
    first_at: instant(told.firstAtMs),
    last_at: instant(told.lastAtMs),
    link: links.list,
    items: told.samples.map((sample) => ({ ...sample, link: links.item(sample.id) })),
  };
}

/** What Slack and those who speak like it get. */
export function slackBody(speaker: Speaker, message: Message): object {
  const [first = '', ...rest] = linesOf(speaker, message);
  return { text: [`*${inSlack(first)}*`, ...rest.map(inSlack)].join('\n') };
}

/** Three characters mean something to Slack; written so, none of them does: no mention, no link, no channel. */
function inSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** What a mail server gets. */
export function mailBody(speaker: Speaker, message: Message): object {
  const [subject = '', ...rest] = linesOf(speaker, message);
  return { subject, text: `${[subject, '', ...rest].join('\n')}\n` };
}

/** The first line says what has happened, those behind it to whom. */
function linesOf(speaker: Speaker, { about, told }: Message): readonly string[] {
  const { name, environment, publicUrl } = speaker;
  const { count, samples, firstAtMs, lastAtMs } = told;
  const { list } = linksOf(about, publicUrl);
  const unnamed = count - samples.length;
  return [
    oneLine(`[${name} ${environment}] ${headline(about, told)}`, MAX_HEADLINE),
    ...samples.map(({ id, summary }) => `- ${id}: ${summary}`),
    ...(unnamed > 0 ? [`and ${unnamed} more`] : []),
    ...(count > 1 ? [`from ${instant(firstAtMs)} to ${instant(lastAtMs)}`] : [`at ${instant(firstAtMs)}`]),
    ...(list === null ? [] : [list]),
  ];
}

function instant(ms: number): string {
  return formatTimestamp(new Date(ms));
}
