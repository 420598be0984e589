import { setTimeout } from 'node:timers/promises';
import { ApiError } from '../../client-http/index.ts';
import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { numberColumn, textColumn } from '../output/columns.ts';
import { withProgress } from '../output/progress.ts';
import { sliceCommand } from '../slice/api-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';

type Offsets = Readonly<{ count: number; offsets: readonly number[] }>;
type Kind = 'missing' | 'different' | 'unexpected';

type Verification = Readonly<
  {
    topic: string;
    partition: number;
    ok: boolean;
    from: number;
    to: number;
    next: number | null;
    broker: Readonly<{ records: number }>;
  } & Record<Kind, Offsets>
>;

type VerifyValues = Readonly<{
  topic?: string;
  partition?: number;
  from?: number;
  to?: number;
  json?: boolean;
}>;

type Part = Readonly<{ topic: string; partition: number }>;

const kinds: readonly Kind[] = ['missing', 'different', 'unexpected'];
/** The server compares records for some seconds per call. */
const timeoutMs = 60_000;
/** Pause while the server serves another verification. */
const retryMs = 1000;
const maxTries = 60;

const offset = wholeNumber(0, Number.MAX_SAFE_INTEGER);

export const verify = sliceCommand(
  {
    name: 'verify',
    hasOwnProgress: true,
    description: 'read partitions again and compare every record with its stored copy; fails on a difference',
    inputs: [
      { flags: '[topic]', text: 'only this dead-letter topic' },
      { flags: '[partition]', text: 'only this partition of it', parse: wholeNumber(0, 2_147_483_647) },
      {
        flags: '--from <offset>',
        text: 'first offset (default: the first that is still there)',
        parse: offset,
      },
      {
        flags: '--to <offset>',
        text: 'offset to stop before (default: the last that was read)',
        parse: offset,
      },
    ],
    examples: ['redrive dlq verify', 'redrive dlq verify orders.dlq.v1 0 --from 1000 --to 2000'],
  },
  (session, values, terminal) => verifyAll(session, values, terminal),
);

async function verifyAll(session: ApiSession, args: VerifyValues, terminal: Terminal): Promise<void> {
  if (args.partition === undefined && (args.from !== undefined || args.to !== undefined))
    throw new UsageError('--from and --to need a topic and a partition');
  const parts = await partsOf(session, args);
  const asJson = args.json === true;
  const verified: Verification[] = [];
  let records = 0;
  const progress = { label: 'verifying', unit: 'records', countDone: () => records, isQuiet: asJson };
  await withProgress(terminal, progress, async () => {
    const onRecords = (count: number): void => void (records += count);
    for (const part of parts) verified.push(await verifyPart(session, { ...part, onRecords }, args));
  });
  const isOk = verified.every(({ ok }) => ok);
  if (asJson) session.print.json(JSON.stringify({ ok: isOk, partitions: verified }));
  else if (parts.length === 0) session.print.note('no partition has been read yet');
  else show(session, verified);
  if (!isOk) throw new SilentFailure();
}

async function partsOf({ call }: ApiSession, { topic, partition }: VerifyValues): Promise<readonly Part[]> {
  if (topic !== undefined && partition !== undefined) return [{ topic, partition }];
  const { value } = await call<{ sources: readonly (Part & { state: string })[] }>(
    requestOf('GET /api/v1/dlq/sources', [], {}),
  );
  const found = value.sources.filter((one) => topic === undefined || one.topic === topic);
  if (topic !== undefined && found.length === 0)
    throw new UsageError(`no partition of ${topic} has been read`);
  return found.filter(({ state }) => state !== 'gone');
}

/** Calls until the end of the range and adds up the answers. */
async function verifyPart(
  { call }: ApiSession,
  { onRecords, ...part }: Part & Readonly<{ onRecords: (count: number) => void }>,
  args: VerifyValues,
) {
  let sum: Verification | null = null;
  for (let from = args.from?.toString(); ; from = String(sum.next)) {
    const asked = requestOf('GET /api/v1/dlq/sources/{topic}/{partition}/verify', [], part);
    const range = { ...asked, input: { ...asked.input, from, to: args.to?.toString() }, timeoutMs };
    const { value }: { value: Verification } = await whenFree(() => call<Verification>(range));
    onRecords(value.broker.records);
    sum = sum === null ? value : added(sum, value);
    if (sum.next === null) return sum;
  }
}

/** A server runs one verification at a time. */
async function whenFree<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1)
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof ApiError && error.code === 'SYS_DLQ_VERIFY_BUSY';
      if (!isBusy || tries === maxTries) throw error;
      await setTimeout(retryMs);
    }
}

function added(before: Verification, after: Verification): Verification {
  const sumOf = (kind: Kind): Offsets => ({
    count: before[kind].count + after[kind].count,
    offsets: [...before[kind].offsets, ...after[kind].offsets].slice(0, 100),
  });
  return {
    ...after,
    ok: before.ok && after.ok,
    from: before.from,
    broker: { records: before.broker.records + after.broker.records },
    missing: sumOf('missing'),
    different: sumOf('different'),
    unexpected: sumOf('unexpected'),
  };
}

function show({ print }: ApiSession, verified: readonly Verification[]): void {
  print.table<Verification>(
    [
      textColumn('TOPIC', ({ topic }) => topic, 20),
      numberColumn('PARTITION', ({ partition }) => partition),
      numberColumn('FROM', ({ from }) => from),
      numberColumn('TO', ({ to }) => to),
      numberColumn('RECORDS', ({ broker }) => broker.records),
      ...kinds.map((kind) => numberColumn<Verification>(kind.toUpperCase(), (row) => row[kind].count)),
      {
        title: 'OK',
        text: ({ ok }) => (ok ? 'yes' : 'NO'),
        tone: ({ ok }) => (ok ? 'good' : 'bad'),
      },
    ],
    verified,
  );
  for (const row of verified)
    for (const kind of kinds) {
      const { offsets, count } = row[kind];
      const more = count > offsets.length ? ', …' : '';
      if (count > 0) print.note(`${row.topic}/${row.partition} ${kind}: ${offsets.join(', ')}${more}`);
    }
}
