import assert from 'node:assert/strict';
import { evaluateRules, type RuleCase } from '../../alerts/evaluate-rules.ts';
import type { Recorder } from '../../alerts/record-samples.ts';

/** What is expected of alerts as the samples are recorded. Nothing is evaluated before `verify`. */
export type AlertWatch = Readonly<{
  /** At the minute of the last sample. */
  silent(...alerts: readonly WatchedAlert[]): void;
  firing(how: string, ...alerts: readonly WatchedAlert[]): void;
  /** Gives the samples to the real rules; fails with what promtool reports. */
  verify(): Promise<void>;
}>;

/** Name and severity; and labels, where others of the name may be firing. */
export type WatchedAlert = readonly [alert: string, severity: RuleCase['severity'], labels?: string];

type Seen = Omit<RuleCase, 'series'> & Readonly<{ how: string }>;

/** A line of the table for each alert that was seen to fire. */
const table: string[] = [];

export function watchAlerts(recorder: Recorder): AlertWatch {
  const seen: Seen[] = [];
  const note = (how: string, fires: boolean, watched: readonly WatchedAlert[]): void => {
    const at = recorder.minute();
    for (const [alert, severity, labels] of watched)
      seen.push({ alert, severity, at, fires, how, ...(labels === undefined ? {} : { labels }) });
  };
  return {
    silent: (...alerts) => note('', false, alerts),
    firing: (how, ...alerts) => note(how, true, alerts),
    async verify() {
      const series = recorder.series();
      assert.equal(await evaluateRules(seen.map(({ how: _how, ...one }) => ({ ...one, series }))), '');
      for (const one of seen.filter(({ fires }) => fires)) table.push(lineOf(one, seen));
    },
  };
}

function lineOf({ alert, severity, labels, how, at }: Seen, seen: readonly Seen[]): string {
  const others = seen.filter(
    (one) => one.alert === alert && one.severity === severity && one.labels === labels && !one.fires,
  );
  const told = [
    others.some((one) => one.at < at) ? 'silent before' : '',
    `fires at minute ${at}`,
    others.some((one) => one.at > at) ? 'silent after' : '',
  ];
  return `| ${alert} (${severity}) | ${how} | ${told.filter((part) => part !== '').join(', ')} |`;
}

export function printTable(): void {
  const lines = ['| alert | how it was caused | seen |', '| --- | --- | --- |', ...table.toSorted()];
  process.stdout.write(`${lines.join('\n')}\n`);
}
