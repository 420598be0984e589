import { Type, type StaticDecode } from 'typebox';

import { findUnsafeInput } from '../../kernel/unsafe-input.ts';
import { cronSchedule } from '../formats/cron-format.ts';
import { headers } from '../formats/header-format.ts';
import { callUrl } from '../formats/host-format.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import {
  decimal,
  decoded,
  duration,
  flag,
  isMap,
  kindOf,
  optional,
  printable,
  section,
  text,
  wholeNumber,
  type About,
  type Flaw,
} from '../formats/value.ts';
import type { InCode } from '../in-code.ts';
import { urlTlsFiles } from '../layers/tls-files.ts';

/** An address that the server calls with each job of a queue. */
const target = Type.Union(
  [
    Type.Object({
      type: Type.Literal('http'),
      url: callUrl({ description: 'URL that gets each job' }),
      headers: headers({ description: 'sent with every job; a value may be `{ file: … }`' }),
      tls: urlTlsFiles(),
    }),
  ],
  {
    description:
      '`{ type: http, url, headers, tls }`: the server pushes each job to this URL. Without it, workers fetch jobs',
  },
);

export type RateLimit = Readonly<{ count: number; windowMs: number }>;

const rateUnits: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

const rateLimit = (about: About) =>
  decoded(
    text({
      what: 'a rate such as 100/s, 30/m or 10/h',
      pattern: '^[1-9]\\d{0,5}/[smh]$',
      reason: (value) =>
        `must be a rate such as 100/s, 30/m or 10/h${typeof value === 'string' ? '' : `, not ${kindOf(value)}`}`,
      ...about,
    }),
    (rate): RateLimit => {
      const [count = '', unit = ''] = rate.split('/');
      return { count: Number(count), windowMs: rateUnits[unit] ?? 0 };
    },
  );

const queue = Type.Object({
  max_retries: wholeNumber(1, 1000, {
    default: 3,
    description: 'failures before dead-lettering, unless the job sets its own',
  }),
  timeout_ms: wholeNumber(1, 86_400_000, {
    default: 60_000,
    description: 'timeout of one attempt, in milliseconds',
  }),
  concurrency: wholeNumber(1, 10_000, {
    default: 10,
    description:
      'parallel calls to the `target`, per process; workers in your own processes have their own setting',
  }),
  global_concurrency: optional(
    wholeNumber(1, 100_000, { description: 'jobs that run at the same time in all processes' }),
  ),
  rate_limit: optional(
    rateLimit({
      description: '`100/s`, `30/m`, `10/h`: jobs that start in each window in all processes',
    }),
  ),
  backoff: section({
    initial_ms: wholeNumber(1, 3_600_000, {
      default: 2000,
      description: 'backoff after the first failure, in milliseconds; it doubles with each failure',
    }),
    max_ms: wholeNumber(1, 86_400_000, {
      default: 300_000,
      description: 'longest backoff, in milliseconds; not less than `initial_ms`',
    }),
    jitter: decimal(0, 1, { default: 0.1, description: 'random share of the backoff, in both directions' }),
  }),
  max_deferrals: wholeNumber(0, 1_000_000, {
    default: 100,
    description:
      'how often a job may be snoozed, released or answered with "busy"; every further time counts as a failure',
  }),
  keep_completed: flag({
    default: true,
    description: '`false`: delete jobs when they complete, which is faster',
  }),
  retention: optional(
    duration('1m', '36500d', {
      otherwise: '`jobs.retention`',
      description: 'how long completed jobs are kept',
    }),
  ),
  dead_retention: optional(
    duration('1m', '36500d', {
      otherwise: '`jobs.dead_retention`',
      description: 'how long dead letters are kept',
    }),
  ),
  target: optional(target),
});

const cronJob = Type.Object({
  schedule: cronSchedule({ description: 'cron schedule: minute, hour, day, month, weekday' }),
  time_zone: text({
    what: 'a time zone such as UTC or Europe/Berlin',
    isValid: isTimeZone,
    default: 'UTC',
    description: 'time zone of the schedule',
  }),
  queue: chosenName('queues', { description: 'queue of the job' }),
  payload: Type.Unknown({
    default: {},
    rule: flawOfPayload,
    description: 'data: it does not merge over files, and null in it stays null',
  }),
  priority: wholeNumber(0, 100, {
    default: 0,
    description: 'each step moves the job one minute ahead',
  }),
  max_retries: optional(
    wholeNumber(1, 1000, { otherwise: "the queue's", description: 'failures before dead-lettering' }),
  ),
});

export type QueueValues = InCode<StaticDecode<typeof queue>>;
export type CronValues = InCode<StaticDecode<typeof cronJob>>;

export const jobs = section({
  retention: duration('1m', '36500d', {
    default: '7d',
    description: 'how long completed jobs are kept, unless the queue sets its own',
  }),
  dead_retention: duration('1m', '36500d', {
    default: '90d',
    description: 'how long dead letters are kept, including unresolved ones',
  }),
  queues: mapOf(chosenName('queues'), queue, {
    default: {},
    examples: [
      {
        summarize: {
          max_retries: 3,
          timeout_ms: 20_000,
          concurrency: 4,
          global_concurrency: 20,
          rate_limit: '100/s',
          backoff: { initial_ms: 2000, max_ms: 300_000, jitter: 0.1 },
          target: { type: 'http', url: 'http://127.0.0.1:9200/summarize' },
        },
      },
    ],
    description: 'settings of queues, by their names: see [Queues](#queues)',
  }),
  cron: mapOf(chosenName('cron jobs'), cronJob, {
    default: {},
    examples: [
      {
        nightly: {
          schedule: '30 2 * * *',
          time_zone: 'Europe/Berlin',
          queue: 'summarize',
          payload: { article_id: 'a-1' },
        },
      },
    ],
    description: 'jobs that are added on a schedule: see [Schedules](#schedules)',
  }),
});

function isTimeZone(zone: string): boolean {
  try {
    return zone !== '' && new Intl.DateTimeFormat('en', { timeZone: zone }).format() !== '';
  } catch {
    return false;
  }
}

/** Whatever YAML can say that JSON can, and that the database can store as it is. */
function flawOfPayload(payload: unknown): Flaw | undefined {
  const flaw = findUnsafeInput(payload, '');
  if (flaw !== null)
    return { at: flaw.field === '' ? '' : `.${printable(flaw.field)}`, reason: flaw.message };
  return isJson(payload)
    ? undefined
    : 'must be what JSON has; a whole number of more than 15 digits belongs into quotes';
}

function isJson(value: unknown): boolean {
  if (typeof value === 'number')
    return Number.isFinite(value) && (Number.isSafeInteger(value) || !Number.isInteger(value));
  if (Array.isArray(value)) return value.every(isJson);
  if (isMap(value)) return isPlain(value) && Object.values(value).every(isJson);
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}

/** YAML also has sets, binary values and more. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
