import { stringify } from 'yaml';
import { alerts, type Alert } from './alerts.ts';
import { ratio, slos, windows } from './slos.ts';

const runbooks = 'https://github.com/redrive/redrive/blob/main/docs/runbooks';

const head = `# Recording rules and alerts for Prometheus; docs/guides/observe.md says how to use them.
# Written by \`npm run observability\` from tools/observability: change it there.
`;

/** deploy/prometheus/rules.yaml */
export function rulesYaml(): string {
  const groups = [
    ...slos.map((slo) => ({
      name: `redrive-slo-${slo.name}`,
      rules: windows.map((window) => ({
        record: ratio(slo, window),
        expr: `${slo.bad(window)} / ${slo.all(window)}`,
      })),
    })),
    { name: 'redrive-alerts', rules: alerts.map(ruleOf) },
  ];
  return head + stringify({ groups }, { lineWidth: 0 });
}

function ruleOf({ name, severity, expr, for: pending, summary, description }: Alert) {
  return {
    alert: name,
    expr,
    ...(pending === undefined ? {} : { for: pending }),
    labels: { severity, service: 'redrive' },
    annotations: { summary, description, runbook_url: `${runbooks}/${name}.md` },
  };
}
