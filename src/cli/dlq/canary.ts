import { InvalidArgumentError } from 'commander';
import { escapeText } from '../../kernel/escape-text.ts';
import type { Fact } from '../output/facts.ts';
import type { Input, Values } from '../slice/define-command.ts';

type Canary = Readonly<{ stages: readonly number[]; watch_seconds: number; stop_percent: number }>;
type CanaryOptions = Readonly<{ canary?: Canary | null }>;

/** The fields of a redrive that tell about its canary. */
export type Staged = Readonly<{
  options: CanaryOptions;
  stage: number | null;
  watch_until: string | null;
  waiting_for: string | null;
}>;

export const canaryInputs: readonly Input[] = [
  {
    flags: '--canary <counts>',
    text: 'send this many first, in stages, and watch whether they come back (1,5,25)',
    parse: parseCounts,
  },
  {
    flags: '--watch-seconds <number>',
    text: 'how long each stage is watched (default: 120)',
    parse: parseNumber,
  },
  {
    flags: '--stop-percent <number>',
    text: 'stop if more than this share comes back (default: 10)',
    parse: parseNumber,
  },
];

export function canaryOf({ canary, watchSeconds, stopPercent }: Values): object | undefined {
  if (canary === undefined && watchSeconds === undefined && stopPercent === undefined) return undefined;
  const stages = Array.isArray(canary) ? canary.map(Number) : undefined;
  return {
    ...(stages === undefined ? {} : { stages }),
    ...(watchSeconds === undefined ? {} : { watch_seconds: watchSeconds }),
    ...(stopPercent === undefined ? {} : { stop_percent: stopPercent }),
  };
}

function parseCounts(text: string): readonly string[] {
  const counts = text.split(',').map((count) => count.trim());
  if (counts.every((count) => /^[1-9][0-9]*$/.test(count))) return counts;
  throw new InvalidArgumentError('Must be whole numbers separated by commas, such as 1,5,25.');
}

function parseNumber(text: string): number {
  if (/^[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Must be a number.');
}

export function canaryFacts(redrive: Staged): readonly Fact[] {
  return [
    ['canary', canaryFact(redrive.options.canary)],
    ['stage', stageFact(redrive)],
    ['waiting for', redrive.waiting_for],
  ];
}

/** What a redrive does now, beside its progress. */
export function watchLabel(redrive: Staged): string {
  const stage = stageFact(redrive);
  const waiting = redrive.waiting_for === null ? '' : `, waiting: ${escapeText(redrive.waiting_for)}`;
  return stage === null ? `redriving${waiting}` : `stage ${stage}${waiting}`;
}

function canaryFact(canary: Canary | null | undefined): string | null {
  if (canary === null || canary === undefined) return null;
  const { stages, watch_seconds: seconds, stop_percent: percent } = canary;
  return `${stages.join(', ')}, then all; watched for ${seconds} s; stops above ${percent} %`;
}

function stageFact({ stage, watch_until: until, options }: Staged): string | null {
  if (stage === null) return null;
  const stages = options.canary?.stages ?? [];
  const bound = stages[stage - 1];
  const name = `${stage} of ${stages.length + 1} (${bound === undefined ? 'all' : `up to ${bound}`})`;
  return until === null ? name : `${name}, watched until ${escapeText(until)}`;
}
