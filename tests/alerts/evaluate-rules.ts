import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { runPromtool } from '../../tools/promtool.ts';

/** Series over time, and an alert that is firing or silent at a moment. */
export type RuleCase = Readonly<{
  alert: string;
  severity: 'page' | 'ticket';
  /** Of the alert, such as `topic="a.dlq"`; without them any. */
  labels?: string;
  /** In the notation of promtool, one value a minute: `0+5x60`. */
  series: Readonly<Record<string, string>>;
  /** Minutes after the first value. */
  at: number;
  fires: boolean;
}>;

export const rulesFile = fileURLToPath(new URL('../../deploy/prometheus/rules.yaml', import.meta.url));

/** Runs `promtool test rules`. Empty if each alert is as expected, else what promtool reports. */
export async function evaluateRules(cases: readonly RuleCase[], stepSeconds = 60): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-rules-'));
  const file = join(folder, 'cases.yaml');
  const tests = independent(cases).map((together) => ({
    interval: `${stepSeconds}s`,
    input_series: [...new Set(together.map(({ series }) => series))].flatMap((series) =>
      Object.entries(series).map(([name, values]) => ({ series: name, values })),
    ),
    promql_expr_test: together.map(({ alert, severity, labels = '', at, fires }) => ({
      expr: `count(ALERTS{alertname="${alert}",severity="${severity}",alertstate="firing",${labels}}) > bool 0 or vector(0)`,
      eval_time: `${Math.round(at * 60)}s`,
      exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
    })),
  }));
  try {
    await writeFile(
      file,
      stringify({ rule_files: [rulesFile], evaluation_interval: `${stepSeconds}s`, tests }, { lineWidth: 0 }),
    );
    const { ok, output } = await runPromtool('test', 'rules', file);
    return ok ? '' : output;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Cases of the same series, or without a common metric, are evaluated together: every test evaluates all rules. */
function independent(cases: readonly RuleCase[]): readonly (readonly RuleCase[])[] {
  const groups: { cases: RuleCase[]; metrics: Set<string> }[] = [];
  for (const one of cases) {
    const metrics = Object.keys(one.series).map((name) => name.replace(/\{.*/, ''));
    const free = groups.find(
      (group) =>
        group.cases.some(({ series }) => series === one.series) ||
        !metrics.some((metric) => group.metrics.has(metric)),
    );
    const group = free ?? { cases: [], metrics: new Set<string>() };
    if (free === undefined) groups.push(group);
    group.cases.push(one);
    for (const metric of metrics) group.metrics.add(metric);
  }
  return groups.map((group) => group.cases);
}
