import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
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
  const all = (parse(await readFile(rulesFile, 'utf8')) as Readonly<{ groups: readonly RuleGroup[] }>).groups;
  const write = async (name: string, content: object): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, stringify(content, { lineWidth: 0 }));
    return file;
  };
  const step = `${stepSeconds}s`;
  try {
    const files = independent(cases).map(async (together, i) => {
      const groups = groupsFor(new Set(together.map(({ alert }) => alert)), all);
      const rules = await write(`rules-${i}.yaml`, { groups });
      const tests = [testOf(together, step)];
      return write(`cases-${i}.yaml`, { rule_files: [rules], evaluation_interval: step, tests });
    });
    const { ok, output } = await runPromtool('test', 'rules', ...(await Promise.all(files)));
    return ok ? '' : output;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function testOf(together: readonly RuleCase[], interval: string) {
  return {
    interval,
    input_series: [...new Set(together.map(({ series }) => series))].flatMap((series) =>
      Object.entries(series).map(([name, values]) => ({ series: name, values })),
    ),
    promql_expr_test: together.map(({ alert, severity, labels = '', at, fires }) => ({
      expr: `count(ALERTS{alertname="${alert}",severity="${severity}",alertstate="firing",${labels}}) > bool 0 or vector(0)`,
      eval_time: `${Math.round(at * 60)}s`,
      exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
    })),
  };
}

type Rule = Readonly<{ alert?: string; record?: string; expr: string }>;
type RuleGroup = Readonly<{ name: string; rules: readonly Rule[] }>;

/** These alerts and the recording rules that they read: evaluating the other rules as well takes ten times as long. */
function groupsFor(names: ReadonlySet<string>, all: readonly RuleGroup[]): readonly RuleGroup[] {
  const rules = all.flatMap((group) => group.rules);
  const needed = new Set(rules.filter(({ alert }) => alert !== undefined && names.has(alert)));
  for (const { expr } of needed)
    for (const rule of rules) if (rule.record !== undefined && expr.includes(rule.record)) needed.add(rule);
  return all
    .map((group) => ({ ...group, rules: group.rules.filter((rule) => needed.has(rule)) }))
    .filter((group) => group.rules.length > 0);
}

/** Cases of the same series, or without a common metric, are evaluated together. */
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
