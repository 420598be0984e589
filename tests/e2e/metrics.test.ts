import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { alerts } from '../../tools/observability/alerts.ts';
import { dashboards } from '../../tools/observability/dashboards.ts';
import { ratio, slos, windows } from '../../tools/observability/slos.ts';
import { expressionsOf, metricsOf } from '../alerts/expressions.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** Metrics of a server that has used every route and every worker. */
describe('the metrics of a running server', () => {
  let world: OutsideWorld;
  let system: TestSystem;
  let text: string;
  before(async () => {
    world = await openOutsideWorld();
    system = await startTestSystem({ kafka: 'local', env: world.env });
    assert.ok(system.broker);
    await runHttpFlows({ api: system.api, broker: system.broker });
    ({ text } = await system.api.get('/metrics'));
  });
  after(async () => {
    await system?.drop();
    await world.close();
  });

  const exported = (): ReadonlySet<string> =>
    new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name));
  const ofRuntime = (name: string): boolean => /^(?:process|nodejs)_/.test(name);

  test('are all documented, and what is documented is exported', () => {
    const document = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');
    const cells = [...document.matchAll(/^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|/gm)].map(([, cell = '']) => cell);
    const documented = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
    assert.deepEqual(
      documented.toSorted(),
      [...exported()].filter((name) => !ofRuntime(name)).toSorted(),
      'docs/reference/metrics.md, compared with /metrics',
    );
  });

  test('have every metric that a rule or a dashboard reads', () => {
    const read = [...alerts.map(({ expr }) => expr), ...slos.map(({ all, bad }) => all('5m') + bad('5m'))];
    const names = new Set([...read, ...dashboards.flatMap(expressionsOf)].flatMap(metricsOf));
    const recorded = slos.flatMap((slo) => windows.map((window) => ratio(slo, window)));
    const known = new Set([...exported(), ...recorded, 'up']);
    assert.ok(names.size > 50);
    assert.deepEqual(
      [...names].filter((name) => !known.has(name)),
      [],
    );
  });

  test('have every loop, and each has been alive within the last two minutes', () => {
    const beats = [
      ...text.matchAll(
        /^redrive_loop_last_success_timestamp_seconds\{slice="(\w+)",loop="([^"]+)"\} (.+)$/gm,
      ),
    ];
    const loops = beats.map(([, slice, loop]) => `${slice} ${loop}`).toSorted();
    assert.deepEqual(loops, [
      'audit denials',
      'audit retention',
      'audit seal',
      'console inbox',
      'dlq archive',
      'dlq discovery',
      'dlq gauges',
      'dlq group-retention',
      'dlq indexer',
      'dlq policies',
      'dlq policy_gauges',
      'dlq reaper',
      'dlq redrive-retention',
      'dlq redrives',
      'jobs cron',
      'jobs gauges',
      'jobs push pushed',
      'jobs queues',
      'jobs reaper',
      'jobs retention',
      'notify notify',
      'outbox deliver _notify_hook',
      'outbox deliver _saga_events',
      'outbox deliver broker',
      'outbox deliver picky',
      'outbox destinations',
      'outbox gauges',
      'outbox reaper',
      'outbox retention',
      'platform credentials',
      'platform heartbeat',
      'platform retention',
      'saga circuit-state',
      'saga circuits',
      'saga engine',
      'saga gauges',
      'saga reaper',
      'saga retention',
    ]);
    for (const [, slice, loop, at] of beats)
      assert.ok(Date.now() / 1000 - Number(at) < 120, `${slice} ${loop} was last alive at ${at}`);
  });

  test('name the version, the schema and the connections', () => {
    assert.match(text, /^redrive_build_info\{version="[\d.]+",node="24\.[\d.]+"\} 1$/m);
    for (const schema of ['platform', 'dlq', 'outbox', 'jobs', 'saga'])
      assert.match(text, new RegExp(`^schema_version\\{schema="${schema}"\\} [1-9]`, 'm'));
    assert.match(text, /^db_pool_max_connections \d+$/m);
    assert.match(text, /^db_pool_connections\{state="busy"\} \d+$/m);
    assert.doesNotMatch(text, /^db_credential_expiry/m, 'the role of this test has no end');
  });
});
