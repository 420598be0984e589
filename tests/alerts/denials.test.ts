import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import { needsPromtool } from '../support/test-promtool.ts';
import { evaluateRules, type RuleCase } from './evaluate-rules.ts';
import { recordSamples } from './record-samples.ts';

/** Callers that are refused at a real server; each scrape counts as a minute. */
describe('AuthDenialsSurge', needsPromtool, () => {
  let guarded: GuardedSystem;
  before(async () => void (guarded = await startGuardedSystem({ more: { server: { metrics_port: 0 } } })));
  after(() => guarded.drop());

  const askAs = (client: ApiClient, count: number, path: string) => async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: count }, () => client.get(path)));
    assert.ok(answers.every(({ status }) => status === 401 || status === 403 || status === 429));
  };

  test('fires while one address guesses tokens, though it gets 429, and while a role is missing, and ends', async () => {
    const recorder = recordSamples(guarded.system.metricsUrl ?? assert.fail());
    const cases: Omit<RuleCase, 'series'>[] = [];
    const expectFiring = (fires: boolean): void =>
      void cases.push({ alert: 'AuthDenialsSurge', severity: 'ticket', at: recorder.minute(), fires });
    const guess = askAs(guarded.withToken('wrong'), 90, '/api/v1/me');
    const lackRole = askAs(await guarded.as(['worker']), 90, '/api/v1/audit');

    await recorder.scrape(6, askAs(guarded.withToken('wrong'), 5, '/api/v1/me'));
    expectFiring(false);
    await recorder.scrape(12, guess);
    expectFiring(true);
    await recorder.scrape(8);
    expectFiring(false);
    await recorder.scrape(12, lackRole);
    expectFiring(true);
    await recorder.scrape(8);
    expectFiring(false);
    const series = recorder.series();
    assert.equal(await evaluateRules(cases.map((one) => ({ ...one, series }))), '');
  });
});
