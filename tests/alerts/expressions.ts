import type { Dashboard } from '../../tools/observability/grafana.ts';

type WithTargets = Readonly<{ targets?: readonly Readonly<{ expr: string }>[] }>;

/** The queries of a dashboard. */
export function expressionsOf(dashboard: Dashboard): readonly string[] {
  const panels = dashboard['panels'] as readonly WithTargets[];
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
}

const notMetrics = new Set(
  'and or unless bool by without on ignoring group_left group_right offset sum min max avg count topk sort_desc rate increase absent time vector histogram_quantile min_over_time ALERTS'.split(
    ' ',
  ),
);

/** The metrics that an expression of PromQL reads; those of a histogram by its name. Recorded ones have colons. */
export function metricsOf(expr: string): readonly string[] {
  const bare = expr
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\boffset \w+/g, '')
    .replaceAll(/\b(?:by|on|without|ignoring) \([^)]*\)/g, '');
  const names = [...bare.matchAll(/[a-zA-Z_][a-zA-Z0-9_:]*/g)].map(([name]) => name);
  return [...new Set(names.filter((name) => !notMetrics.has(name)).map(histogramOf))];
}

function histogramOf(name: string): string {
  return name.includes(':') ? name : name.replace(/_(?:bucket|sum|count)$/, '');
}
