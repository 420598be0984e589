import type { Panel } from './panels.ts';

/** A dashboard as Grafana imports it. */
export type Dashboard = Readonly<{ uid: string; title: string }> & Readonly<Record<string, unknown>>;

const datasource = { type: 'prometheus', uid: '${datasource}' };
const runbooks = 'https://github.com/redrive/redrive/blob/main/docs/runbooks';

export function dashboard(uid: string, title: string, panels: readonly Panel[]): Dashboard {
  return {
    uid,
    title,
    tags: ['redrive'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    annotations: { list: [alertAnnotations] },
    links: [
      {
        type: 'dashboards',
        title: 'Redrive',
        tags: ['redrive'],
        asDropdown: true,
        includeVars: true,
        keepTime: true,
      },
    ],
    templating: { list: variables },
    panels: placed(panels),
  };
}

/** Marks when alerts fired. */
const alertAnnotations = {
  name: 'Alerts',
  datasource,
  enable: true,
  iconColor: 'red',
  expr: 'ALERTS{service="redrive",alertstate="firing",severity="page"}',
  titleFormat: '{{alertname}}',
};

const variables = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
  {
    name: 'namespace',
    label: 'Namespace',
    type: 'query',
    datasource,
    query: { query: 'label_values(redrive_build_info, namespace)', refId: 'namespace' },
    refresh: 2,
    includeAll: true,
    // Without namespaces the label is missing, which `.*` matches.
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
  },
];

/** From left to right, then the next line, as text flows. */
function placed(panels: readonly Panel[]): readonly object[] {
  let [x, y, lineHeight] = [0, 0, 0];
  return panels.map((panel, index) => {
    if (x + panel.width > 24) [x, y, lineHeight] = [0, y + lineHeight, 0];
    const gridPos = { x, y, w: panel.width, h: panel.height };
    x += panel.width;
    lineHeight = Math.max(lineHeight, panel.height);
    return { id: index + 1, gridPos, ...panelJson(panel) };
  });
}

function panelJson(panel: Panel): object {
  const { type, title, description } = panel;
  if (type === 'row') return { type, title, collapsed: false, panels: [] };
  return {
    type,
    title,
    ...(description === undefined ? {} : { description }),
    datasource,
    targets: panel.queries.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode(65 + i),
      datasource,
      expr,
      legendFormat: legend,
      ...(type === 'timeseries' ? {} : { instant: true }),
      ...(type === 'table' ? { format: 'table' } : {}),
    })),
    fieldConfig: { defaults: fieldDefaults(panel), overrides: [] },
    options: optionsOf(type),
    ...(panel.alert === undefined
      ? {}
      : {
          links: [
            { title: `Runbook: ${panel.alert}`, url: `${runbooks}/${panel.alert}.md`, targetBlank: true },
          ],
        }),
  };
}

function fieldDefaults({ type, unit, thresholds, isStacked }: Panel): object {
  const line = {
    fillOpacity: isStacked === true ? 30 : 8,
    lineWidth: 1,
    showPoints: 'never',
    ...(isStacked === true ? { stacking: { mode: 'normal' } } : {}),
    ...(thresholds === undefined ? {} : { thresholdsStyle: { mode: 'dashed' } }),
  };
  return {
    unit: unit ?? 'short',
    min: type === 'timeseries' ? 0 : undefined,
    ...(thresholds === undefined
      ? {}
      : {
          color: { mode: type === 'stat' ? 'thresholds' : 'palette-classic' },
          thresholds: { mode: 'absolute', steps: thresholds },
        }),
    ...(type === 'timeseries' ? { custom: line } : {}),
    ...(type === 'stat' ? { noValue: '–' } : {}),
  };
}

function optionsOf(type: Panel['type']): object {
  switch (type) {
    case 'stat':
      return { colorMode: 'background', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } };
    case 'timeseries':
      return {
        legend: { displayMode: 'table', placement: 'bottom', calcs: ['lastNotNull', 'max'] },
        tooltip: { mode: 'multi', sort: 'desc' },
      };
    case 'table':
    case 'row':
      return {};
  }
}
