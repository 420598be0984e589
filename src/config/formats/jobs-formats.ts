import { findUnsafeInput } from '../../kernel/unsafe-input.ts';
import { cronSchedule } from './cron-format.ts';
import { callUrl } from './destination-formats.ts';
import {
  accept,
  decimal,
  duration,
  filePath,
  flag,
  isMap,
  jsonFromText,
  kindOf,
  printable,
  reject,
  text,
  wholeNumber,
  type Format,
} from './format.ts';
import { headers } from './header-format.ts';
import { chosenName, mapOf, shapeOf, variantsOf, type ValueOf } from './map-format.ts';
import { optional, withDefault } from '../setting.ts';

/** An address that the server calls with each job of a queue. */
const target = variantsOf('type', {
  http: {
    url: callUrl(),
    headers: withDefault(headers(), {}),
    tls: withDefault(
      shapeOf({ ca: optional(filePath()), cert: optional(filePath()), key: optional(filePath()) }),
      {},
    ),
  },
});

const queue = shapeOf({
  max_retries: withDefault(wholeNumber(1, 1000), 3),
  timeout_ms: withDefault(wholeNumber(1, 86_400_000), 60_000),
  /** In one process. */
  concurrency: withDefault(wholeNumber(1, 10_000), 10),
  /** Over all processes. */
  global_concurrency: optional(wholeNumber(1, 100_000)),
  rate_limit: optional(rateLimit()),
  backoff: withDefault(
    shapeOf({
      initial_ms: withDefault(wholeNumber(1, 3_600_000), 2000),
      max_ms: withDefault(wholeNumber(1, 86_400_000), 300_000),
      jitter: withDefault(decimal(0, 1), 0.1),
    }),
    {},
  ),
  max_deferrals: withDefault(wholeNumber(0, 1_000_000), 100),
  keep_completed: withDefault(flag(), true),
  retention: optional(duration('1m', '36500d')),
  dead_retention: optional(duration('1m', '36500d')),
  target: optional(target),
});

const cronJob = shapeOf({
  schedule: cronSchedule(),
  time_zone: withDefault(timeZone(), 'UTC'),
  queue: chosenName('queues'),
  payload: withDefault(anyJson(), {}),
  priority: withDefault(wholeNumber(0, 100), 0),
  max_retries: optional(wholeNumber(1, 1000)),
});

export type QueueValues = ValueOf<typeof queue>;
export type CronValues = ValueOf<typeof cronJob>;

export const queues = (): Format<Readonly<Record<string, QueueValues>>> => mapOf(chosenName('queues'), queue);

export const cronJobs = (): Format<Readonly<Record<string, CronValues>>> =>
  mapOf(chosenName('cron jobs'), cronJob);

export type RateLimit = Readonly<{ count: number; windowMs: number }>;

const rateUnits = { s: 1000, m: 60_000, h: 3_600_000 } as const;

/** `100/s`, `30/m` or `10/h`. */
function rateLimit(): Format<RateLimit> {
  const what = 'a rate such as 100/s, 30/m or 10/h';
  return {
    unit: '',
    fromText: (value) => value,
    parse(value) {
      if (typeof value !== 'string') return reject(`must be ${what}, not ${kindOf(value)}`);
      const [, count = '', unit = ''] = /^([1-9]\d{0,5})\/([smh])$/.exec(value) ?? [];
      const windowMs = Object.hasOwn(rateUnits, unit) ? rateUnits[unit as keyof typeof rateUnits] : undefined;
      return windowMs === undefined ? reject(`must be ${what}`) : accept({ count: Number(count), windowMs });
    },
  };
}

function timeZone(): Format<string> {
  return text('a time zone such as UTC or Europe/Berlin', (value) => {
    try {
      return value !== '' && new Intl.DateTimeFormat('en', { timeZone: value }).format() !== '';
    } catch {
      return false;
    }
  });
}

/** Whatever YAML can say that JSON can, and that the database can store as it is. */
function anyJson(): Format<unknown> {
  return {
    unit: '',
    isData: true,
    fromText: jsonFromText,
    parse(value) {
      const flaw = findUnsafeInput(value, '');
      if (flaw !== null)
        return reject(flaw.message, { at: flaw.field === '' ? '' : `.${printable(flaw.field)}` });
      return isJson(value)
        ? accept<unknown>(value)
        : reject('must be what JSON has; a whole number of more than 15 digits belongs into quotes');
    },
  };
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
