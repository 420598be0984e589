import { Type, type StaticDecode } from 'typebox';

import { topicGlob } from '../formats/topic-format.ts';
import {
  decimal,
  duration,
  listOf,
  optional,
  text,
  wholeNumber,
  withRule,
  type About,
} from '../formats/value.ts';
import type { InCode } from '../in-code.ts';

/** Each costs queries every few seconds, and is a label of metrics. */
const MAX_POLICIES = 100;

const className = text({
  what: 'the whole name of an error class, without * and spaces',
  pattern: '^[^*\\s]{1,1000}$',
});

const fingerprint = text({
  what: 'a whole fingerprint: v, a version, a colon and 32 hexadecimal digits',
  pattern: '^v\\d{1,3}:[\\da-f]{32}$',
});

const canary = Type.Object(
  {
    stages: withRule(
      listOf(wholeNumber(1, 1_000_000), {
        minItems: 1,
        maxItems: 20,
        default: [1, 5, 25],
        description: 'how many messages each stage ends at',
      }),
      (stages) =>
        stages.every((bound, i) => i === 0 || bound > (stages[i - 1] ?? 0))
          ? undefined
          : 'must be ascending numbers',
    ),
    watch: duration('1s', '1d', {
      default: '2m',
      description: 'how long a stage is watched after its last message',
    }),
    stop_percent: decimal(0, 99, {
      default: 10,
      description: 'share of messages that may come back',
    }),
  },
  {
    otherwise: 'none',
    description:
      'each round sends a few messages first, and watches whether they come back: `stages` (`[1, 5, 25]`), `watch` (`2m`), `stop_percent` (10). If too many come back, the policy is disabled until a person resumes it',
  },
);

const policy = Type.Object({
  name: text({
    what: '1 to 40 characters of a-z, 0-9, _ and -, beginning with a letter',
    pattern: '^[a-z][a-z\\d_-]{0,39}$',
    description:
      '1 to 40 characters of `a-z`, `0-9`, `_` and `-`, starting with a letter; unique. The state of a policy (paused, disabled) belongs to its name',
  }),
  topics: listOf(topicGlob(), {
    minItems: 1,
    maxItems: 100,
    description: 'patterns of original topics: `orders.*`. Dead-letter topics are none',
  }),
  error_classes: optional(
    listOf(className, {
      minItems: 1,
      maxItems: 100,
      otherwise: 'all',
      description: 'error classes, by their whole names',
    }),
  ),
  fingerprints: optional(
    listOf(fingerprint, {
      minItems: 1,
      maxItems: 100,
      otherwise: 'all',
      description: 'fingerprints, as `redrive dlq group` shows them',
    }),
  ),
  delay: duration('1s', '30d', {
    description:
      'time from the end of an attempt, or from the arrival of the dead letter, to the first retry',
  }),
  backoff: decimal(1, 10, {
    default: 2,
    description:
      'factor by which the delay grows with every attempt: `delay` x `backoff`^`retry_count`, at most 30 days',
  }),
  max_attempts: optional(
    wholeNumber(1, 1000, {
      otherwise: '`dlq.max_retries`',
      description:
        'the policy leaves a message alone that has had this many attempts, by whomever; a lower value than `dlq.max_retries` leaves the rest to people',
    }),
  ),
  canary: optional(canary),
  rate: decimal(0.1, 100_000, { default: 10, description: 'messages per second' }),
});

export type AutoRetryValues = InCode<StaticDecode<typeof policy>>;

export const retryPolicies = (about: About) =>
  listOf(policy, {
    default: [],
    maxItems: MAX_POLICIES,
    examples: [
      [
        {
          name: 'timeouts',
          topics: ['orders.*', 'payments.*'],
          error_classes: ['java.net.SocketTimeoutException'],
          delay: '5m',
          backoff: 2,
          max_attempts: 2,
          rate: 20,
          canary: { stages: [1, 10] },
        },
      ],
    ],
    ...about,
  });
