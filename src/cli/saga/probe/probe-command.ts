import { InvalidArgumentError, Option, type Command } from 'commander';
import { withExamples } from '../../examples.ts';
import { SilentFailure, UsageError } from '../../exit-code.ts';
import { parseJson, readText } from '../../json-input.ts';
import { escapeText } from '../../output/escape-text.ts';
import { createPrinter, type Printer } from '../../output/printer.ts';
import type { Column } from '../../output/render-table.ts';
import type { Terminal } from '../../terminal.ts';
import { wholeNumber } from '../../whole-number.ts';
import type { Endpoint } from './probed-participant.ts';
import { runProbe, type CheckResult } from './run-probe.ts';

type Target = Omit<Endpoint, 'body'>;

type ProbeArgs = Readonly<{
  action: Target;
  undo: Target;
  body?: string;
  bodyFile?: string;
  undoBody?: string;
  otherBody?: string;
  header: readonly (readonly [name: string, value: string])[];
  timeout: number;
  json?: boolean;
}>;

export function addProbeCommand(saga: Command, terminal: Terminal): void {
  withExamples(
    saga
      .command('probe')
      .description(
        'call a participant as sagas do when things go wrong (twice, late, overlapping, undo first) and tell what ' +
          'it gets wrong; it really does and undoes the action, so use a system for tests',
      )
      .argument('<url>', 'where the participant is', readUrl)
      .requiredOption('--action <method>', "the action, such as 'POST /reservations'", readTarget)
      .requiredOption('--undo <method>', "its undo, such as 'POST /reservations/release'", readTarget)
      .addOption(new Option('--body <json>', 'what the action is sent').conflicts('bodyFile'))
      .option('--body-file <file>', 'what the action is sent, from a file; - is standard input')
      .option('--undo-body <json>', 'what the undo is sent; by default the same')
      .option('--other-body <json>', 'another valid request; by default the body with one more field')
      .option('--header <header>', "such as 'authorization: Bearer …'; may be repeated", addHeader, [])
      .option('--timeout <seconds>', 'of one call, polls included', wholeNumber(1, 3600), 30)
      .option('--json', 'as JSON'),
    `redrive saga probe http://localhost:3000 --action 'POST /reserve' --undo 'POST /release' --body '{"sku":"shoe"}'`,
  ).action((url: URL, args: ProbeArgs) => probe(terminal, url, args));
}

async function probe(terminal: Terminal, url: URL, args: ProbeArgs): Promise<void> {
  const print = createPrinter(terminal);
  const from = {
    text: args.body,
    file: args.bodyFile,
    what: 'the body',
    options: '--body or --body-file',
  };
  const body = parseJson(await readText(terminal, from), 'the body');
  const undoBody = args.undoBody === undefined ? body : parseJson(args.undoBody, 'the body of the undo');
  const { openParticipant } = await import('./probed-participant.ts');
  const participant = openParticipant({
    url,
    action: { ...args.action, body },
    undo: { ...args.undo, body: undoBody },
    headers: Object.fromEntries(args.header),
    timeoutMs: args.timeout * 1000,
  });
  const results: CheckResult[] = [];
  try {
    for await (const result of runProbe(participant, otherBodyOf(args.otherBody, body))) results.push(result);
  } finally {
    await participant.close();
  }
  show(print, url, results, args.json === true);
  if (results.some(({ result }) => result !== 'pass')) throw new SilentFailure();
}

function show(print: Printer, url: URL, results: readonly CheckResult[], asJson: boolean): void {
  const count = (result: CheckResult['result']): number =>
    results.filter((each) => each.result === result).length;
  const figures = { passed: count('pass'), failed: count('fail'), skipped: count('skipped') };
  if (asJson) {
    print.json(JSON.stringify({ url: url.href, ...figures, checks: results }, null, 2));
    return;
  }
  const tones = { pass: 'good', fail: 'bad', skipped: 'faint' } as const;
  const columns: readonly Column<CheckResult>[] = [
    { title: 'CHECK', text: ({ check }) => check },
    {
      title: 'RESULT',
      text: ({ result }) => result,
      paint: (cell, { result }) => print.paint(tones[result], cell),
    },
    { title: 'RULE', text: ({ rule }) => rule },
  ];
  print.table(columns, results);
  for (const { check, result, found } of results)
    if (result === 'fail') print.line(`${check}: ${escapeText(found ?? '')}`);
  print.note(`${figures.passed} passed, ${figures.failed} failed, ${figures.skipped} skipped`);
}

function otherBodyOf(text: string | undefined, body: unknown): unknown {
  if (text !== undefined) return parseJson(text, 'the other body');
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject) throw new UsageError('the body is no object: give another one with --other-body');
  return { ...body, redrive_probe: 'another body' };
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError('It is no HTTP address.');
  return url;
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

function readTarget(text: string): Target {
  const [, verb = 'POST', path] = /^(?:([A-Z]+) +)?(\/[^\s#]*)$/.exec(text) ?? [];
  const method = methods.find((each) => each === verb);
  if (path === undefined || method === undefined)
    throw new InvalidArgumentError("It is no method and path, such as 'POST /reservations'.");
  return { method, path };
}

function addHeader(text: string, before: ProbeArgs['header']): ProbeArgs['header'] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([\t\x20-\x7e]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("It is not 'name: value'.");
  return [...before, [name.toLowerCase(), value]];
}
