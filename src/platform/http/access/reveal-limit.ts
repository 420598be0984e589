import type { FastifyRequest } from 'fastify';
import { subjectOf } from '../../../kernel/access/principal.ts';
import { systemClock, type Clock } from '../../../kernel/clock.ts';
import { minuteMs } from '../../../kernel/duration.ts';
import { AppError } from '../../../kernel/errors.ts';

/** Throws when the caller has revealed too much within the last minute. Counted per process. */
export type RevealLimit = (request: Pick<FastifyRequest, 'principal'>) => void;

/** More than a person reads. */
const perMinute = 60;
const rememberedCallers = 10_000;

/** Nobody reads more than this; a program that copies protected payloads is slowed down and noticed. */
export function createRevealLimit(clock: Pick<Clock, 'now'> = systemClock): RevealLimit {
  const counts = new Map<string, number>();
  let minute = 0;
  return ({ principal }) => {
    const now = Math.floor(clock.now().getTime() / minuteMs);
    if (now !== minute || counts.size > rememberedCallers) counts.clear();
    minute = now;
    const subject = subjectOf(principal);
    const count = (counts.get(subject) ?? 0) + 1;
    counts.set(subject, count);
    if (count > perMinute)
      throw new AppError(
        'SYS_RATE_LIMIT_EXCEEDED',
        'rate_limited',
        `more than ${perMinute} reveals within a minute; try again in the next one`,
        { retryAfterMs: minuteMs },
      );
  };
}
