import { dashboards } from './dashboards.ts';
import { rulesYaml } from './rules.ts';

/** Path and text of every file that is written from the lists in this folder. */
export function generatedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ['deploy/prometheus/rules.yaml', rulesYaml()],
    ...dashboards.map(
      (dashboard) =>
        [`deploy/grafana/${dashboard.uid}.json`, `${JSON.stringify(dashboard, null, 2)}\n`] as const,
    ),
  ]);
}
