import type { Query } from './panels.ts';

/** Selects what the dashboard's variable says. */
const ns = 'namespace=~"$namespace"';
export const pick = (metric: string, labels = ''): string =>
  `${metric}{${ns}${labels === '' ? '' : `,${labels}`}}`;
export const rate = (metric: string, by = '', labels = ''): string =>
  `sum${by === '' ? ' ' : ` by (${by}) `}(rate(${pick(metric, labels)}[$__rate_interval]))`;
/** Shared gauges: one replica exports them, two while one takes over from the other. */
export const max = (metric: string, by = '', labels = ''): string =>
  by === '' ? `max(${pick(metric, labels)})` : `max by (${by}) (${pick(metric, labels)})`;
/** 0 instead of nothing. */
export const orZero = (expr: string): string => `${expr} or vector(0)`;
export const age = (timestamp: string): string => `time() - min(${pick(timestamp)})`;

export const q = (expr: string, legend: string): Query => ({ expr, legend });

export const quantiles = (histogram: string, labels = ''): readonly Query[] =>
  ['0.5', '0.95', '0.99'].map((quantile) =>
    q(
      `histogram_quantile(${quantile}, ${rate(`${histogram}_bucket`, 'le', labels)})`,
      `p${Number(quantile) * 100}`,
    ),
  );
