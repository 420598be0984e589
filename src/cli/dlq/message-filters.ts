import type { ApiSession } from '../api/api-session.ts';
import { lastColumn, textColumn } from '../output/columns.ts';
import { apiCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { facetsCommand } from '../slice/facets-command.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import { wholeNumber } from '../whole-number.ts';
import { statuses } from './message.ts';

/** Which messages are meant; a negation excludes one value. */
export const messageFilters: readonly Input[] = [
  { flags: '--status <status>', text: 'only messages in this status', choices: statuses },
  { flags: '--text <words>', text: 'only messages with all these words in the error or the value' },
  { flags: '--error-class <class>', text: 'only messages with this error class' },
  { flags: '--consumer-group <group>', text: 'only messages of this consumer group' },
  { flags: '--fingerprint <fingerprint>', text: 'only messages with this fingerprint' },
  { flags: '--key <key>', text: 'only messages with this key' },
  ...timeInputs('only messages stored'),
  { flags: '--unroutable', text: 'only messages whose original topic is unknown' },
  { flags: '--has-edit', text: 'only messages that an operator has edited' },
  { flags: '--archived', text: 'archived messages in place of the live ones' },
  { flags: '--not-topic <topic>', text: 'no messages of this topic or pattern' },
  { flags: '--not-status <status>', text: 'no messages in this status', choices: statuses },
  { flags: '--not-text <words>', text: 'no messages with all these words' },
  { flags: '--not-error-class <class>', text: 'no messages with this error class' },
  { flags: '--not-consumer-group <group>', text: 'no messages of this consumer group' },
  { flags: '--not-fingerprint <fingerprint>', text: 'no messages with this fingerprint' },
  { flags: '--not-key <key>', text: 'no messages with this key' },
];

type Searched = Readonly<{ indexed_until?: string; scanned_until?: string }>;

/** New messages are found a moment later; a search that takes long ends early. */
const freshMs = 10_000;

/** What the list may leave out. */
export function searchNote(page: unknown, { print, now }: ApiSession): void {
  const { indexed_until, scanned_until } = page as Searched;
  if (indexed_until !== undefined && now.getTime() - Date.parse(indexed_until) > freshMs)
    print.note(`messages stored since ${indexed_until} may be missing: they are not indexed yet`);
  if (scanned_until !== undefined)
    print.note(`the search ended after 2 s; messages before ${scanned_until} were not checked`);
}

export const facets = facetsCommand({
  description: 'count messages by status, topic, error class, consumer group and fingerprint',
  route: 'GET /api/v1/dlq/messages/facets',
  items: 'messages',
  inputs: [
    { flags: '[topic]', text: "only messages of this topic; 'orders.*' is a pattern" },
    ...messageFilters,
  ],
  examples: ['redrive dlq facets', "redrive dlq facets 'orders.*' --text 'timed out' --status DEAD"],
  printAbove: searchNote,
});

type Suggestion = Readonly<{ value: string; label: string | null; count: number | null }>;

export const suggest = apiCommand<Readonly<{ values: readonly Suggestion[]; has_more: boolean }>>({
  name: 'suggest',
  description: 'complete the value of a filter: list the topics, classes, groups or keys that there are',
  route: 'GET /api/v1/dlq/messages/suggest',
  inputs: [
    {
      flags: '<field>',
      text: 'which filter',
      choices: ['status', 'topic', 'error_class', 'consumer_group', 'fingerprint', 'key'],
    },
    { flags: '[prefix]', text: 'beginning or part of the value' },
    { flags: '--limit <number>', text: 'how many values (default: 20)', parse: wholeNumber(1, 50) },
  ],
  examples: ['redrive dlq suggest topic ord', 'redrive dlq suggest error_class timeout'],
  print({ values, has_more }, { print }) {
    if (values.length === 0) return print.note('no such values');
    print.table(
      [
        textColumn<Suggestion>('VALUE', ({ value }) => value, 12),
        textColumn<Suggestion>('COUNT', ({ count }) => (count === null ? '-' : String(count))),
        lastColumn<Suggestion>('ERROR', ({ label }) => label ?? ''),
      ],
      values,
    );
    if (has_more) print.note(`only the first ${values.length} values are shown`);
  },
});
