import { expect, test } from 'vitest';
import { parseFilter } from '../../lib/filter/filter.ts';
import { toQuery } from '../../lib/filter/qualifiers.ts';
import { describeRank } from './describe-rank.ts';
import {
  entryAddress,
  entryPlace,
  filterOfState,
  placeText,
  shortSubject,
  stateOfFilter,
  verbPlace,
  type Entry,
} from './inbox-entry.ts';
import { inboxQualifiers } from './inbox-qualifiers.ts';
import { countValues } from './list/count-values.ts';
import { describeAccounting } from './list/describe-accounting.ts';
import { withUnread } from './list/with-unread.ts';
import { en } from './texts/en.ts';

const rank = (some: Partial<Entry['rank']>): Entry['rank'] => ({
  code: 'recent',
  count: 3,
  age_seconds: 60,
  growth_factor: null,
  growth_minutes: null,
  ...some,
});
const entry = (some: Partial<Entry> = {}): Entry => ({
  id: 'messages.a',
  kind: 'messages',
  slice: 'dlq',
  state: 'open',
  title: 'TimeoutException',
  where: { topic: 'orders.v1', fingerprint: 'v2:7f' },
  count: 3,
  trend: null,
  oldest_at: '2026-11-19T12:00:00Z',
  newest_at: null,
  rank: rank({}),
  rank_reason: 'as the server says it',
  badges: [],
  owner: null,
  snooze: null,
  done: null,
  notes: 0,
  verb: { action: 'plan_redrive', permission: 'dlq:redrives:plan' },
  link: '/dlq/redrives/new?q=topic%3Aorders.v1',
  ...some,
});
const reason = (some: Partial<Entry['rank']>, oldest: string | null = '2026-11-19T12:00:00Z'): string =>
  describeRank(entry({ rank: rank(some), oldest_at: oldest }), { t: en, ageOf: () => '12 m' });

test('the reason of a rank says what is dangerous, and how long it waits', () => {
  expect(reason({ code: 'effect_unknown', count: 1 })).toBe('effect unknown: 1 item · waiting for 12 m');
  expect(reason({ code: 'undo_stuck' })).toBe('the undo is stuck: 3 items · waiting for 12 m');
  expect(reason({ code: 'growing', growth_factor: 8.04, growth_minutes: 10 })).toBe('growing 8× in 10 min');
  expect(reason({ code: 'growing', growth_factor: 120.6, growth_minutes: 60 })).toBe(
    'growing 121× in 60 min',
  );
  expect(reason({ code: 'growing', growth_minutes: 60 })).toBe('growing: none is usual, many came in 60 min');
  expect(reason({ code: 'old' })).toBe('waiting for 12 m');
  expect(reason({ code: 'recent' }, null)).toBe('3 items waiting');
  expect(reason({ code: 'of a later version' as Entry['rank']['code'] })).toBe('as the server says it');
});

test('where an entry is says names, not hashes', () => {
  expect(placeText({ where: { topic: 'orders.v1', consumer_group: 'billing', fingerprint: 'v2:7f' } })).toBe(
    'orders.v1 · billing',
  );
  expect(placeText({ where: { topic: 'orders.dlq', partition: 0 } })).toBe('orders.dlq p0');
  expect(placeText({ where: { workflow: 'place-order', step: 'charge' } })).toBe('place-order / charge');
  expect(placeText({ where: { destination: 'broker', ordering_key: 'C-17' } })).toBe('broker · C-17');
  expect(placeText({ where: {} })).toBe('');
});

test('a row leads to its items, and its verb to where something is decided', () => {
  expect(entryPlace(entry())).toEqual({ to: '/dlq/groups/v2%3A7f', search: {} });
  expect(verbPlace(entry())).toEqual({ to: '/dlq/redrives/new', search: { q: 'topic:orders.v1' } });
  const job = entry({
    kind: 'jobs',
    where: { queue: 'mail' },
    verb: { action: 'requeue', permission: 'jobs:jobs:requeue' },
    link: '/jobs/list?q=status%3Adead_letter%20queue%3Amail%20error%3A%22no%20user%22',
  });
  expect(entryPlace(job).to).toBe('/jobs/list');
  expect(verbPlace(job)).toEqual({ to: '/jobs/requeue', search: { q: 'queue:mail error:"no user"' } });
});

test('a link that leads out of the console is not followed', () => {
  for (const link of ['https://example.com/', '//example.com', 'javascript:alert(1)', '/\\example.com'])
    expect(verbPlace(entry({ link })), link).toBeNull();
  expect(entryPlace({ kind: 'jobs', where: {}, link: 'javascript:alert(1)' })).toEqual({
    to: '/inbox',
    search: {},
  });
});

test('tabs keep the rest of the filter, and the open ones need no term', () => {
  const terms = parseFilter('is:snoozed kind:jobs mail');
  expect(filterOfState(terms, 'open')).toEqual({ q: 'kind:jobs mail' });
  expect(filterOfState(terms, 'done')).toEqual({ q: 'is:done kind:jobs mail' });
  expect(filterOfState([], 'open')).toEqual({});
  expect(stateOfFilter(terms)).toBe('snoozed');
  expect(stateOfFilter(parseFilter('kind:jobs'))).toBe('open');
});

test('the filter becomes the parameters of the API', () => {
  expect(toQuery(parseFilter('is:done kind:sagas assignee:me,none place order'), inboxQualifiers, 0)).toEqual(
    {
      isValid: true,
      parameters: [
        ['state', 'done'],
        ['kind', 'sagas'],
        ['assignee', 'me,none'],
        ['text', 'place order'],
      ],
    },
  );
  expect(toQuery(parseFilter('kind:letters'), inboxQualifiers, 0).isValid).toBe(false);
});

test('an address of an entry opens its preview in the same list', () => {
  expect(entryAddress({ id: 'jobs.x' }, 'is:snoozed a&b')).toBe('/inbox?q=is%3Asnoozed+a%26b&peek=jobs.x');
  expect(entryAddress({ id: 'jobs.x' }, '')).toBe('/inbox?peek=jobs.x');
});

test('entries of a slice that could not be read stay; others go', () => {
  const [job, message, saga] = [
    entry({ id: 'jobs.a', slice: 'jobs' }),
    entry({ id: 'messages.a' }),
    entry({ id: 'sagas.a', slice: 'saga' }),
  ];
  const shown = [job, message, saga];
  expect(withUnread({ entries: [message] }, shown)).toEqual([message]);
  expect(withUnread({ entries: [message], unavailable: ['jobs'] }, shown)).toEqual([message, job]);
});

test('values to filter by are counted, and nobody can always be chosen', () => {
  const owner = { subject: 'user:ada', name: 'ada' };
  const ada = { subject: 'user:ada', type: 'user' } as const;
  const counts = countValues([entry({ owner }), entry({ owner }), entry({ kind: 'jobs' })], ada);
  expect(counts['assignee']).toEqual([
    { value: 'me', count: 2 },
    { value: 'none', count: 1 },
  ]);
  expect(counts['kind']).toEqual([
    { value: 'messages', count: 2 },
    { value: 'jobs', count: 1 },
  ]);
  expect(countValues([], ada)['assignee']?.map(({ value }) => value)).toEqual(['me', 'none']);
});

test('an empty inbox says what is known of reading, and no more', () => {
  const read = { passed: 18_000, lag: 0 };
  expect(describeAccounting({ balanced: true, partitions: [read, read] }, en)).toBe(
    '36\u202f000 records read from 2 partitions of dead-letter topics. Accounting complete: every one is accounted for. Reading is up to date.',
  );
  expect(describeAccounting({ balanced: false, partitions: [{ passed: 1, lag: null }] }, en)).toMatch(
    /does not add up.*not known for 1 partition/,
  );
  expect(describeAccounting({ balanced: true, partitions: [] }, en)).toMatch(/^No dead-letter topic is read/);
});

test('of a subject only what tells people apart is shown', () => {
  expect(shortSubject('user:https://idp.example.com/realms/main|ada')).toBe('ada');
  expect(shortSubject('anonymous')).toBe('anonymous');
});
