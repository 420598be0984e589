import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderOf, load, loadYaml, problemOf, problemsOf } from '../../../tests/support/test-config.ts';

const dayMs = 86_400_000;

const queueWith = (text: string) =>
  loadYaml(`jobs: {queues: {mail: ${text}}}`).jobs.queues[0] ?? assert.fail();
const cronWith = (text: string) =>
  loadYaml(`jobs: {cron: {nightly: {schedule: "0 3 * * *", queue: mail, ${text}}}}`).jobs.cron[0] ??
  assert.fail();

test('without a word about jobs there are no queues and no schedules, and what ends is kept for a while', () => {
  assert.deepEqual(load({}).jobs, {
    retentionMs: 7 * dayMs,
    deadRetentionMs: 90 * dayMs,
    queues: [],
    cron: [],
  });
});

test('a queue that says nothing has every default', () => {
  assert.deepEqual(queueWith('{}'), {
    name: 'mail',
    maxRetries: 3,
    timeoutMs: 60_000,
    concurrency: 10,
    maxRunning: null,
    rateLimit: null,
    backoff: { initialMs: 2000, maxMs: 300_000, jitter: 0.1 },
    maxDeferrals: 100,
    keepCompleted: true,
    retentionMs: 7 * dayMs,
    deadRetentionMs: 90 * dayMs,
    target: null,
  });
});

test('the summarizer of the platform is a queue that is pushed to its target', () => {
  const { target, ...queue } = queueWith(`{
    max_retries: 3, timeout_ms: 20000, concurrency: 4, backoff: {initial_ms: 2000, max_ms: 300000},
    target: {type: http, url: "http://127.0.0.1:9200/summarize"}}`);
  assert.deepEqual([queue.timeoutMs, queue.concurrency, queue.backoff.jitter], [20_000, 4, 0.1]);
  assert.deepEqual(target, { url: 'http://127.0.0.1:9200/summarize', headers: {}, tls: undefined });
});

test('a queue may say everything', () => {
  const folder = folderOf({ token: 'Bearer one\n', 'ca.pem': 'PEM' });
  const { target, ...queue } = queueWith(`{
    max_retries: 9, timeout_ms: 5, concurrency: 2, global_concurrency: 6, rate_limit: 30/m,
    backoff: {initial_ms: 1, max_ms: 2, jitter: 0}, max_deferrals: 0, keep_completed: false,
    retention: 1m, dead_retention: 365d,
    target: {type: http, url: "https://jobs.example.com", tls: {ca: "${join(folder, 'ca.pem')}"},
             headers: {Authorization: {file: "${join(folder, 'token')}"}, X-Team: ops}}}`);
  assert.deepEqual(queue, {
    name: 'mail',
    maxRetries: 9,
    timeoutMs: 5,
    concurrency: 2,
    maxRunning: 6,
    rateLimit: { count: 30, windowMs: 60_000 },
    backoff: { initialMs: 1, maxMs: 2, jitter: 0 },
    maxDeferrals: 0,
    keepCompleted: false,
    retentionMs: 60_000,
    deadRetentionMs: 365 * dayMs,
  });
  const headers = Object.entries(target?.headers ?? {}).map(([name, value]) => [name, value()]);
  assert.deepEqual(headers, [
    ['Authorization', 'Bearer one'],
    ['X-Team', 'ops'],
  ]);
  assert.equal(target?.tls?.ca, 'PEM');
});

test('what a queue does not say about its keep is as for all', () => {
  const { jobs } = loadYaml('jobs: {retention: 1h, dead_retention: 2h, queues: {a: {}, b: {retention: 3h}}}');
  assert.deepEqual(
    jobs.queues.map(({ retentionMs, deadRetentionMs }) => [retentionMs, deadRetentionMs]),
    [
      [3_600_000, 7_200_000],
      [10_800_000, 7_200_000],
    ],
  );
});

test('rates are written with a unit, and are more than nothing', () => {
  assert.deepEqual(queueWith('{rate_limit: 100/s}').rateLimit, { count: 100, windowMs: 1000 });
  assert.deepEqual(queueWith('{rate_limit: 1/h}').rateLimit, { count: 1, windowMs: 3_600_000 });
  for (const wrong of [
    '0/s',
    '100',
    '"100"',
    '1.5/s',
    '-1/s',
    '1/d',
    '9999999/s',
    '1/constructor',
    '[1]',
    'x',
  ])
    assert.match(
      problemOf(() => loadYaml(`jobs: {queues: {mail: {rate_limit: ${wrong}}}}`)).reason,
      /such as 100\/s/,
    );
});

test('a backoff ends no lower than it begins', () => {
  const problem = problemOf(() =>
    loadYaml('jobs: {queues: {mail: {backoff: {initial_ms: 20, max_ms: 10}}}}'),
  );
  assert.equal(problem.path, 'jobs.queues.mail.backoff.max_ms');
  assert.match(problem.reason, /not be less than jobs\.queues\.mail\.backoff\.initial_ms/);
});

test('a target that cannot be called is a problem before the first job', () => {
  const wrong = (target: string): string =>
    problemsOf(() => loadYaml(`jobs: {queues: {mail: {target: ${target}}}}`))
      .map(({ path }) => path)
      .join();
  assert.equal(wrong('{url: "http://a"}'), 'jobs.queues.mail.target.type');
  assert.equal(wrong('{type: http}'), 'jobs.queues.mail.target.url');
  assert.equal(wrong('{type: http, url: "ftp://a"}'), 'jobs.queues.mail.target.url');
  assert.equal(wrong('{type: http, url: "http://user:pw@a"}'), 'jobs.queues.mail.target.url');
  assert.equal(
    wrong('{type: http, url: "http://a", headers: {Idempotency-Key: x}}'),
    'jobs.queues.mail.target.headers.Idempotency-Key',
  );
  assert.equal(
    wrong('{type: http, url: "https://a", headers: {X-Token: {file: /nonexistent}}}'),
    'jobs.queues.mail.target.headers.X-Token.file',
  );
  assert.equal(
    wrong('{type: http, url: "https://a", tls: {ca: /nonexistent}}'),
    'jobs.queues.mail.target.tls.ca',
  );
});

test('a certificate and its key come together, and are of no use without TLS', () => {
  const folder = folderOf({ 'cert.pem': 'PEM' });
  const cert = join(folder, 'cert.pem');
  const target = (url: string, tls: string): string =>
    `jobs: {queues: {mail: {target: {type: http, url: "${url}", tls: ${tls}}}}}`;
  assert.equal(
    problemOf(() => loadYaml(target('https://a', `{cert: "${cert}"}`))).path,
    'jobs.queues.mail.target.tls.key',
  );
  assert.equal(
    problemOf(() => loadYaml(target('https://a', `{key: "${cert}"}`))).path,
    'jobs.queues.mail.target.tls.cert',
  );
  const { warnings } = loadYaml(target('http://a', `{cert: "${cert}", key: "${cert}"}`));
  assert.deepEqual(warnings, [
    'jobs.queues.mail.target.tls is not used: jobs.queues.mail.target.url begins with http:',
  ]);
});

test('a key that is wrong by a letter is told by its nearest', () => {
  const problem = problemOf(() => loadYaml('jobs: {queues: {mail: {max_retry: 3}}}'));
  assert.deepEqual([problem.path, problem.suggestion], ['jobs.queues.mail.max_retry', 'max_retries']);
  assert.equal(problemOf(() => loadYaml('jobs: {queues: {Mail: {}}}')).suggestion, 'mail');
});

test('a schedule that says only when and where has every default', () => {
  assert.deepEqual(cronWith(''), {
    name: 'nightly',
    schedule: '0 3 * * *',
    timeZone: 'UTC',
    queue: 'mail',
    payload: {},
    priority: 0,
    maxRetries: null,
  });
  const { timeZone, priority, maxRetries } = cronWith(
    'time_zone: Europe/Berlin, priority: 100, max_retries: 1',
  );
  assert.deepEqual([timeZone, priority, maxRetries], ['Europe/Berlin', 100, 1]);
});

test('a schedule that is none, never comes, or is of no zone is a problem', () => {
  const wrong = (entry: string): string =>
    problemsOf(() => loadYaml(`jobs: {cron: {nightly: {queue: mail, ${entry}}}}`))
      .map(({ path }) => path.replace('jobs.cron.nightly.', ''))
      .join();
  assert.equal(wrong(''), 'schedule');
  for (const schedule of ['never', '* * * *', '* * * * * *', '61 * * * *', '0 0 30 2 *', '@daily', ''])
    assert.equal(wrong(`schedule: "${schedule}"`), 'schedule', schedule);
  for (const zone of ['Europe/Nowhere', '', '"+25:00"'])
    assert.equal(wrong(`schedule: "0 3 * * *", time_zone: ${zone || '""'}`), 'time_zone', zone);
  assert.equal(
    problemOf(() => loadYaml('jobs: {cron: {n: {schedule: "* * * * *"}}}')).path,
    'jobs.cron.n.queue',
  );
});

test('a payload is data: nothing in it merges, and null in it is null', () => {
  const files = {
    'config.yaml': 'jobs: {cron: {n: {schedule: "0 3 * * *", queue: mail, payload: {a: 1, b: {c: 2}}}}}',
    'config.dev.yaml': 'jobs: {cron: {n: {payload: {a: null, "d.e": [null, {f: null}], g: {}}}}}',
  };
  const { jobs } = load({ files });
  assert.equal(JSON.stringify(jobs.cron[0]?.payload), '{"a":null,"d.e":[null,{"f":null}],"g":{}}');
  assert.deepEqual([jobs.cron[0]?.schedule, jobs.cron[0]?.queue], ['0 3 * * *', 'mail']);
  const fromVariable = load({ files, env: { JOBS_CRON_N_PAYLOAD: '{"h": [1, null]}' } });
  assert.equal(JSON.stringify(fromVariable.jobs.cron[0]?.payload), '{"h":[1,null]}');
  const whole = load({
    env: { JOBS_CRON: '{"n":{"schedule":"0 3 * * *","queue":"q","payload":{"x":null}}}' },
  });
  assert.equal(JSON.stringify(whole.jobs.cron[0]?.payload), '{"x":null}');
});

test('a payload is whatever JSON has, and nothing else that YAML has', () => {
  for (const [text, json] of [
    ['7', '7'],
    ['-1.5', '-1.5'],
    ['text', '"text"'],
    ['false', 'false'],
    ['[1, [2]]', '[1,[2]]'],
    ['"\\U0001F600"', '"\u{1F600}"'],
    ['2026-01-01', '"2026-01-01"'],
  ] as const)
    assert.equal(JSON.stringify(cronWith(`payload: ${text}`).payload), json);
  for (const wrong of [
    '.nan',
    '.inf',
    '1e400',
    '12345678901234567890',
    '"\\0"',
    '[{a: "x\\0"}]',
    '{"\\0": 1}',
    '{__proto__: 1}',
    '[!!binary aGVsbG8=]',
    '{a: !!set {b, c}}',
    '&a [*a]',
  ])
    assert.match(problemOf(() => loadYaml(cron(wrong))).path, /^jobs\.cron\.n\.payload/, wrong);
  const lone = problemOf(() => load({ env: { JOBS_CRON: JSON.stringify({ n: withPayload('\uD800') }) } }));
  assert.equal(lone.path, 'jobs.cron.n.payload');
});

const withPayload = (payload: unknown): unknown => ({ schedule: '0 3 * * *', queue: 'mail', payload });
const cron = (payload: string): string =>
  `jobs: {cron: {n: {schedule: "0 3 * * *", queue: mail, payload: ${payload}}}}`;

test('a schedule may name a queue that is not configured, but a slip is pointed out', () => {
  const text = (queue: string): string =>
    `jobs: {queues: {summarize: {}}, cron: {nightly: {schedule: "0 3 * * *", queue: ${queue}}}}`;
  assert.deepEqual(loadYaml(text('summarize')).warnings, []);
  assert.deepEqual(loadYaml(text('mail')).warnings, []);
  assert.deepEqual(loadYaml(text('summarise')).warnings, [
    'jobs.cron.nightly.queue is not one of jobs.queues; did you mean summarize?',
  ]);
});

test('every key of a queue or a schedule that a file names has its variable', () => {
  const config = load({
    files: { 'config.yaml': 'jobs: {queues: {mail: {}}, cron: {n: {schedule: "0 3 * * *", queue: mail}}}' },
    env: {
      JOBS_RETENTION: '1h',
      JOBS_QUEUES_MAIL_TIMEOUT_MS: '7',
      JOBS_QUEUES_MAIL_KEEP_COMPLETED: 'false',
      JOBS_QUEUES_MAIL_RATE_LIMIT: '5/s',
      JOBS_CRON_N_SCHEDULE: '* * * * *',
      JOBS_CRON_N_PRIORITY: '3',
    },
  });
  const [queue] = config.jobs.queues;
  assert.deepEqual(
    [queue?.timeoutMs, queue?.keepCompleted, queue?.rateLimit?.count, queue?.retentionMs],
    [7, false, 5, 3_600_000],
  );
  assert.deepEqual([config.jobs.cron[0]?.schedule, config.jobs.cron[0]?.priority], ['* * * * *', 3]);
  assert.deepEqual(config.warnings, []);
});
