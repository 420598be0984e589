import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startSagaSystem } from '../support/saga-system.ts';

const placeOrder = `
name: place-order
steps:
  - name: reserve
    service: shop
    method: POST /reserve
    compensate: POST /release
  - name: charge
    service: shop
    method: POST /charge
`;

type Readiness = Readonly<{
  status: string;
  checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
}>;

test('workflows of a folder run, a bad one degrades readiness, and the metrics tell of it all', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'workflows-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'place-order.yaml'), placeOrder);
  await writeFile(join(folder, 'z-again.yml'), placeOrder);
  const at = await startSagaSystem({ env: { SAGA_WORKFLOW_DIR: folder } });
  t.after(() => at.drop());
  const { api } = at.system;

  const ready = await api.get<Readiness>('/readyz');
  assert.equal(ready.status, 200);
  assert.equal(ready.body.status, 'degraded');
  assert.deepEqual(ready.body.checks['workflows'], {
    status: 'degraded',
    message: 'z-again.yml: the workflow place-order is already defined in place-order.yaml',
  });

  at.shop.setScript(({ what, body }) => {
    const { end } = body as { end: string };
    if (end === 'FAILED' && what === 'charge') return { status: 409 };
    return end === 'STUCK' && what !== 'reserve' ? { status: 422 } : undefined;
  });
  const start = (end: string) => at.start('place-order', { payload: { end } });
  await at.becomes(await start('COMPLETED'), 'COMPLETED');
  await at.becomes(await start('FAILED'), 'FAILED');
  await at.waitsForPerson(await start('STUCK'));

  const step = (name: string, action: string): string =>
    `saga_step_duration_seconds_count{workflow="place-order",step="${name}",action="${action}"}`;
  const expected = {
    'saga_started_total{workflow="place-order"}': 3,
    'saga_finished_total{workflow="place-order",status="COMPLETED"}': 1,
    'saga_finished_total{workflow="place-order",status="FAILED"}': 1,
    [step('reserve', 'EXECUTE')]: 3,
    [step('charge', 'EXECUTE')]: 3,
    [step('reserve', 'COMPENSATE')]: 2,
    'saga_active{status="STARTED"}': 0,
    'saga_active{status="RUNNING"}': 0,
    'saga_active{status="COMPENSATING"}': 1,
    saga_needs_attention: 1,
    saga_in_doubt_seconds: 0,
  };
  await eventually(async () => {
    const { text } = await api.get('/metrics');
    const samples = new Map(
      text.split('\n').map((line) => [line.replace(/ \S+$/, ''), line.split(' ').at(-1)]),
    );
    const found = Object.keys(expected).map((name) => [name, Number(samples.get(name) ?? Number.NaN)]);
    assert.deepEqual(Object.fromEntries(found), expected);
  });
  const { checks } = (await api.get<Readiness>('/readyz')).body;
  assert.deepEqual(
    checks['workflows'],
    ready.body.checks['workflows'],
    'what needs attention makes no replica ill',
  );
});
