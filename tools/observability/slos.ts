/** The service level objectives. Each counts events of `/metrics`, good and bad, over a window. */
export type Slo = Readonly<{
  /** Part of the names of the recording rules. */
  name: string;
  alert: string;
  title: string;
  /** The share of events that must be good. */
  objective: number;
  /** Bad and all events per second over a window such as `5m`, by namespace. */
  bad: (window: string) => string;
  all: (window: string) => string;
}>;

/** Waits on purpose (a claim may wait for jobs), or streams for as long as it has work. */
const patientRoutes = '.*/(claim|retry-all|verify|requeue|retry)';
const api = `job="redrive",route=~"/api/.*"`;
const quickApi = `${api},route!~"${patientRoutes}"`;

const rate = (selector: string, window: string): string =>
  `sum by (namespace) (rate(${selector}[${window}]))`;

/** Events of a histogram that took longer than `seconds`, which must be one of its buckets. */
function slower(histogram: string, seconds: number, labels = '') {
  // Prometheus 3 writes 60 as 60.0.
  const le = Number.isInteger(seconds) ? `le=~"${seconds}(\\\\.0)?"` : `le="${seconds}"`;
  const comma = labels === '' ? '' : `${labels},`;
  const braces = labels === '' ? '' : `{${labels}}`;
  return {
    bad: (window: string) =>
      `(${rate(`${histogram}_count${braces}`, window)} - ${rate(`${histogram}_bucket{${comma}${le}}`, window)})`,
    all: (window: string) => rate(`${histogram}_count${braces}`, window),
  };
}

export const slos: readonly Slo[] = [
  {
    name: 'api_errors',
    alert: 'ApiErrorBudgetBurn',
    title: '99.95 % of API requests are answered without a 5xx',
    objective: 0.9995,
    bad: (window) => rate(`http_requests_total{${api},status=~"5.."}`, window),
    all: (window) => rate(`http_requests_total{${api}}`, window),
  },
  {
    name: 'api_latency',
    alert: 'ApiSlow',
    title: '99 % of API requests are answered within 200 ms',
    objective: 0.99,
    ...slower('http_request_duration_seconds', 0.2, quickApi),
  },
  {
    name: 'dlq_ingest',
    alert: 'DlqIngestBudgetBurn',
    title: '99.9 % of dead letters are stored within 60 s',
    objective: 0.999,
    ...slower('dlq_ingest_delay_seconds', 60),
  },
  {
    name: 'outbox_settle',
    alert: 'OutboxBudgetBurn',
    title: '99 % of orders are settled within 60 s',
    objective: 0.99,
    ...slower('outbox_settle_seconds', 60),
  },
  {
    name: 'jobs_start',
    alert: 'JobsBudgetBurn',
    title: '99 % of due jobs are started within 30 s',
    objective: 0.99,
    ...slower('jobs_start_delay_seconds', 30),
  },
];

export const windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'] as const;
type Window = (typeof windows)[number];

/** The recorded share of bad events over a window. */
export function ratio(slo: Slo, window: Window): string {
  return `slo:${slo.name}:bad_ratio_rate${window}`;
}

/**
 * Four pairs of windows: the long one says that a real part of the month's budget is gone, the short one that it still
 * goes. The factor is how many times faster than allowed.
 */
const burns: readonly Readonly<{
  severity: 'page' | 'ticket';
  long: Window;
  short: Window;
  factor: number;
}>[] = [
  { severity: 'page', long: '1h', short: '5m', factor: 14.4 },
  { severity: 'page', long: '6h', short: '30m', factor: 6 },
  { severity: 'ticket', long: '1d', short: '2h', factor: 3 },
  { severity: 'ticket', long: '3d', short: '6h', factor: 1 },
];

/** With little traffic one bad event would be a large share: it takes at least this many to page. */
const fewestBadEvents = 10;

export function burnExpression(slo: Slo, severity: 'page' | 'ticket'): string {
  const budget = Number((1 - slo.objective).toFixed(6));
  const parts = burns
    .filter((burn) => burn.severity === severity)
    .map(({ long, short, factor }) => {
      const above = (window: Window): string => `${ratio(slo, window)} > ${factor} * ${budget}`;
      return `(${above(long)} and ${above(short)})`;
    });
  const burning = parts.join(' or ');
  return severity === 'ticket'
    ? burning
    : `(${burning}) and on (namespace) ${slo.bad('1h')} * 3600 >= ${fewestBadEvents}`;
}
