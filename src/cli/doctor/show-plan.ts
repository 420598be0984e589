import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import type { Printer } from '../output/printer.ts';
import { wholeNumber } from '../whole-number.ts';
import { planCapacity, type Load, type SlicePlan } from './capacity.ts';

export type PlanArgs = Readonly<{
  plan?: boolean;
  replicas: number;
  deadLetters: number;
  orders: number;
  jobs: number;
  sagas: number;
  steps: number;
  payloadBytes: number;
  callMs: number;
}>;

const most = 1_000_000_000;

export function withPlanOptions(command: Command): Command {
  return command
    .option('--plan', 'compute connections, workers, drain time, rows, bytes and WAL instead of checking')
    .option('--replicas <number>', 'with --plan: processes with all roles', wholeNumber(1, 10_000), 2)
    .option('--dead-letters <number>', 'with --plan: dead letters per day', wholeNumber(0, most), 10_000)
    .option('--orders <number>', 'with --plan: orders per day', wholeNumber(0, most), 1_000_000)
    .option('--jobs <number>', 'with --plan: jobs per day', wholeNumber(0, most), 1_000_000)
    .option('--sagas <number>', 'with --plan: sagas per day', wholeNumber(0, most), 100_000)
    .option('--steps <number>', 'with --plan: steps of a saga', wholeNumber(1, 1000), 3)
    .option(
      '--payload-bytes <number>',
      'with --plan: mean size of a payload',
      wholeNumber(0, 16_777_216),
      1000,
    )
    .option('--call-ms <number>', 'with --plan: mean duration of a call', wholeNumber(1, 3_600_000), 50);
}

export function showPlan(
  print: Printer,
  config: Config,
  args: PlanArgs & Readonly<{ json?: boolean }>,
): void {
  const load = loadOf(args);
  const plan = planCapacity(config, load);
  if (args.json === true) return print.json(JSON.stringify({ load, ...plan }, null, 2));
  print.table<SlicePlan>(
    [
      { title: 'SLICE', text: ({ slice }) => slice },
      { title: 'IN FLIGHT', text: ({ inFlight }) => String(inFlight) },
      { title: 'ITEMS/S', text: ({ perSecond }) => perSecond.toFixed(0) },
      { title: 'DRAIN', text: ({ drainSeconds }) => `${Math.ceil(drainSeconds)} s` },
      { title: 'ROWS/DAY', text: ({ rowsPerDay }) => String(rowsPerDay) },
      { title: 'MB/DAY', text: ({ bytesPerDay }) => megabytes(bytesPerDay) },
      { title: 'WAL MB/DAY', text: ({ walBytesPerDay }) => megabytes(walBytesPerDay) },
    ],
    plan.slices,
  );
  print.note(
    `${load.replicas} replicas need ${plan.connections} connections; DRAIN is the time for the items of a day`,
  );
}

function loadOf({ replicas, deadLetters, orders, jobs, sagas, steps, payloadBytes, callMs }: PlanArgs): Load {
  const perDay = { dlq: deadLetters, outbox: orders, jobs, saga: sagas };
  return { replicas, perDay, steps, payloadBytes, callMs };
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(0);
}
