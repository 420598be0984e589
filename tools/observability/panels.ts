/** The few kinds of panels that the dashboards consist of, as Grafana 10 and later read them. */

export type Query = Readonly<{ expr: string; legend: string }>;

type Threshold = Readonly<{ color: string; value: number | null }>;

export type Panel = Readonly<{
  title: string;
  type: 'stat' | 'timeseries' | 'table' | 'row';
  /** Of 24 columns. */
  width: number;
  height: number;
  description?: string | undefined;
  unit?: string | undefined;
  queries: readonly Query[];
  thresholds?: readonly Threshold[] | undefined;
  /** The alert whose runbook the panel links to. */
  alert?: string | undefined;
  isStacked?: boolean | undefined;
}>;

type Details = Readonly<Partial<Pick<Panel, 'unit' | 'description' | 'alert' | 'width'>>>;

/** Green as long as the value is below `limit`. */
const redFrom = (limit: number): readonly Threshold[] => [
  { color: 'green', value: null },
  { color: 'red', value: limit },
];

/** One number that is green below `redFrom`. */
export function stat(
  title: string,
  expr: string,
  details: Details & Readonly<{ redFrom?: number; legend?: string }>,
): Panel {
  const { redFrom: limit, legend = '', ...more } = details;
  const thresholds = limit === undefined ? undefined : redFrom(limit);
  return { type: 'stat', title, width: 4, height: 4, queries: [{ expr, legend }], thresholds, ...more };
}

export function graph(
  title: string,
  queries: readonly Query[],
  details: Details & Readonly<{ redFrom?: number; isStacked?: boolean }>,
): Panel {
  const { redFrom: limit, ...more } = details;
  const thresholds = limit === undefined ? undefined : redFrom(limit);
  return { type: 'timeseries', title, width: 12, height: 8, queries, thresholds, ...more };
}

export function table(title: string, expr: string, details: Details): Panel {
  return { type: 'table', title, width: 12, height: 8, queries: [{ expr, legend: '' }], ...details };
}

export function row(title: string): Panel {
  return { type: 'row', title, width: 24, height: 1, queries: [] };
}
