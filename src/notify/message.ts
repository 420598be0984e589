import { formatTimestamp } from '../kernel/timestamp.ts';
import type { GroupName, Notice } from './grouping.ts';
import { headline } from './headline.ts';
import { linksOf } from './links.ts';
import { oneLine } from './one-line.ts';

/** The installation that sends the message. */
export type Source = Readonly<{ name: string; environment: string; publicUrl: string | undefined }>;

/** One message to a person. Its texts are already cleaned and cut. */
export type Message = Readonly<{ id: string; atMs: number; about: GroupName; notice: Notice }>;

export const MAX_SUBJECT = 200;
export const MAX_ITEM_ID = 100;
export const MAX_SUMMARY = 200;
const MAX_HEADLINE = 300;

/**
 * The body of a webhook call. Within a version fields may be added, but none is removed or changes its meaning. A
 * message may come twice, with the same `id`.
 */
export function webhookBody(source: Source, { id, atMs, about, notice }: Message): object {
  const links = linksOf(about, source.publicUrl);
  return {
    version: 1,
    id,
    at: instant(atMs),
    source: { name: source.name, environment: source.environment },
    slice: about.slice,
    kind: about.kind,
    subject: about.subject,
    headline: headline(about, notice),
    is_summary: notice.isSummary,
    count: notice.count,
    first_at: instant(notice.firstAtMs),
    last_at: instant(notice.lastAtMs),
    link: links.list,
    items: notice.samples.map((sample) => ({ ...sample, link: links.item(sample.id) })),
  };
}

/** For Slack and services with the same format. */
export function slackBody(source: Source, message: Message): object {
  const [first = '', ...rest] = linesOf(source, message);
  return { text: [`*${inSlack(first)}*`, ...rest.map(inSlack)].join('\n') };
}

/** Escapes Slack's three control characters, so that text cannot contain a mention, a link or a channel. */
function inSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

export function mailBody(source: Source, message: Message): object {
  const [subject = '', ...rest] = linesOf(source, message);
  return { subject, text: `${[subject, '', ...rest].join('\n')}\n` };
}

/** The headline, then the samples. */
function linesOf(source: Source, { about, notice }: Message): readonly string[] {
  const { name, environment, publicUrl } = source;
  const { count, samples, firstAtMs, lastAtMs } = notice;
  const { list } = linksOf(about, publicUrl);
  const unnamed = count - samples.length;
  return [
    oneLine(`[${name} ${environment}] ${headline(about, notice)}`, MAX_HEADLINE),
    ...samples.map(({ id, summary }) => `- ${id}: ${summary}`),
    ...(unnamed > 0 ? [`and ${unnamed} more`] : []),
    ...(count > 1 ? [`from ${instant(firstAtMs)} to ${instant(lastAtMs)}`] : [`at ${instant(firstAtMs)}`]),
    ...(list === null ? [] : [list]),
  ];
}

function instant(ms: number): string {
  return formatTimestamp(new Date(ms));
}
