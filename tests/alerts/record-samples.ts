import { alerts } from '../../tools/observability/alerts.ts';
import { slos } from '../../tools/observability/slos.ts';
import { metricsOf } from './expressions.ts';

/**
 * Scrapes real servers as Prometheus does, and keeps the samples as series for promtool, one minute apart: what takes
 * minutes in Prometheus takes as long as the scrapes do. Ages stay as they are, so timestamps move with the minutes.
 */
export type Recorder = Readonly<{
  /** The minute of the last sample. */
  minute(): number;
  /** Each time first `before`, so that something happens in every minute. */
  scrape(times?: number, before?: () => Promise<unknown>): Promise<void>;
  /** The last sample again, for as many minutes: what has happened goes on, and nothing else happens. */
  persist(minutes: number): void;
  /** In the notation of promtool. */
  series(): Readonly<Record<string, string>>;
}>;

const read: ReadonlySet<string> = new Set(
  [...alerts.map(({ expr }) => expr), ...slos.map(({ bad, all }) => bad('1h') + all('1h'))].flatMap(
    metricsOf,
  ),
);

/** As in Prometheus's configuration for many targets. */
const scrapeTimeoutMs = 10_000;

type Sample = ReadonlyMap<string, number>;

/** `ageFactor`: ages become so many times longer; for scrapes that are `60 / ageFactor` seconds apart. */
export function recordSamples(url: string | readonly string[], ageFactor = 1): Recorder {
  const samples: Sample[] = [];
  const targets = [url].flat();
  const scrapeAll = async (): Promise<Sample> => {
    const seconds = 60 * samples.length;
    const found = targets.map((target, i) =>
      scrapeOnce(target, { labels: `job="redrive",instance="replica-${i}:8080"`, seconds, ageFactor }),
    );
    return new Map((await Promise.all(found)).flatMap((sample) => [...sample]));
  };
  return {
    minute: () => samples.length - 1,
    async scrape(times = 1, before) {
      for (let i = 0; i < times; i += 1) {
        await before?.();
        samples.push(await scrapeAll());
      }
    },
    persist(minutes) {
      const last = samples.at(-1);
      if (last !== undefined) samples.push(...Array.from({ length: minutes }, () => last));
    },
    series() {
      const names = new Set(samples.flatMap((sample) => [...sample.keys()]));
      return Object.fromEntries(
        // A series that a scrape does not have ends at once.
        [...names].map((name) => [name, samples.map((sample) => sample.get(name) ?? 'stale').join(' ')]),
      );
    },
  };
}

type Target = Readonly<{
  labels: string;
  /** The time of the sample in the series. */
  seconds: number;
  ageFactor: number;
}>;

async function scrapeOnce(url: string, target: Target): Promise<Sample> {
  const sample = new Map<string, number>();
  const text = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(scrapeTimeoutMs) }).then(
    async (response) => response.text(),
    () => null,
  );
  sample.set(`up{${target.labels}}`, text === null ? 0 : 1);
  const now = Date.now() / 1000;
  for (const [, name = '', labels = '', value = ''] of text?.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm) ?? []) {
    const metric = read.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');
    if (!read.has(metric) || !Number.isFinite(Number(value))) continue;
    const moved = /_(?:timestamp|start_time)_seconds$/.test(name)
      ? target.seconds - target.ageFactor * (now - Number(value))
      : Number(value);
    sample.set(`${name}{${labels === '' ? '' : `${labels},`}${target.labels}}`, moved);
  }
  return sample;
}
