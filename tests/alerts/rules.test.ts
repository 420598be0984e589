import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';
import { alerts } from '../../tools/observability/alerts.ts';
import { dashboards } from '../../tools/observability/dashboards.ts';
import { runPromtool } from '../../tools/promtool.ts';
import { needsPromtool } from '../support/test-promtool.ts';
import { evaluateRules, rulesFile } from './evaluate-rules.ts';
import { expressionsOf } from './expressions.ts';
import { pageCases, ticketCases } from './rule-cases.ts';

describe('the rules of Prometheus', needsPromtool, () => {
  test('are valid', async () => {
    const { ok, output } = await runPromtool('check', 'rules', '--lint-fatal', rulesFile);
    assert.ok(ok, output);
  });

  test('have a firing and a silent case for each alert that pages', () => {
    const named = (fires: boolean): readonly string[] =>
      [...new Set(pageCases.filter((one) => one.fires === fires).map(({ alert }) => alert))].toSorted();
    const pages = alerts.filter(({ severity }) => severity === 'page').map(({ name }) => name);
    assert.deepEqual(named(true), pages.toSorted());
    assert.deepEqual(named(false), pages.toSorted());
  });

  test('fire and are silent as the cases say', async () => {
    assert.equal(await evaluateRules([...pageCases, ...ticketCases]), '');
  });

  test('a wrong expectation of a case would be noticed', async () => {
    const [first] = pageCases;
    assert.ok(first);
    assert.match(await evaluateRules([{ ...first, fires: !first.fires }]), /FAILED/);
  });
});

test('every query of a dashboard is valid', needsPromtool, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-panels-'));
  const rules = dashboards.flatMap(expressionsOf).map((expr, i) => ({
    record: `panel:${i}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$namespace', '.*'),
  }));
  try {
    const file = join(folder, 'panels.yaml');
    await writeFile(file, stringify({ groups: [{ name: 'panels', rules }] }, { lineWidth: 0 }));
    const { ok, output } = await runPromtool('check', 'rules', file);
    assert.ok(ok, output);
  } finally {
    await rm(folder, { recursive: true });
  }
});
