import { alerts } from '../../tools/observability/alerts.ts';
import { slos } from '../../tools/observability/slos.ts';
import { metricsOf } from './expressions.ts';

/**
 * Scrapes a real server as Prometheus does, and keeps the samples as series for promtool, one minute apart: what takes
 * minutes in Prometheus takes as long as the scrapes do. Ages stay as they are, so timestamps move with the minutes.
 */
export type Recorder = Readonly<{
  /** The minute of the last sample. */
  minute(): number;
  scrape(times?: number): Promise<void>;
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

const target = 'job="redrive",instance="a:8080"';

type Sample = ReadonlyMap<string, number>;

export function recordSamples(url: string): Recorder {
  const samples: Sample[] = [];
  const minute = (): number => samples.length - 1;
  return {
    minute,
    async scrape(times = 1) {
      for (let i = 0; i < times; i += 1) samples.push(await scrapeOnce(url, 60 * samples.length));
    },
    persist(minutes) {
      const last = samples.at(-1);
      if (last !== undefined) samples.push(...Array.from({ length: minutes }, () => last));
    },
    series() {
      const names = new Set(samples.flatMap((sample) => [...sample.keys()]));
      return Object.fromEntries(
        [...names].map((name) => [name, samples.map((sample) => sample.get(name) ?? '_').join(' ')]),
      );
    },
  };
}

/** `seconds`: the time of the sample in the series. */
async function scrapeOnce(url: string, seconds: number): Promise<Sample> {
  const sample = new Map<string, number>();
  const text = await fetch(`${url}/metrics`).then(
    async (response) => response.text(),
    () => null,
  );
  sample.set(`up{${target}}`, text === null ? 0 : 1);
  const shift = seconds - Date.now() / 1000;
  for (const [, name = '', labels = '', value = ''] of text?.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm) ?? []) {
    const metric = read.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');
    if (!read.has(metric) || !Number.isFinite(Number(value))) continue;
    const moved = name.endsWith('_timestamp_seconds') ? Number(value) + shift : Number(value);
    sample.set(`${name}{${labels === '' ? target : `${labels},${target}`}}`, moved);
  }
  return sample;
}
