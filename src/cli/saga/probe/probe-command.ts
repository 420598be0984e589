import { InvalidArgumentError, Option, type Command } from 'commander';
import { withExamples } from '../../examples.ts';
import { SilentFailure, UsageError } from '../../exit-code.ts';
import { parseJson, readText } from '../../json-input.ts';
import { escapeText } from '../../../kernel/escape-text.ts';
import { createPrinter, type Printer } from '../../output/printer.ts';
import type { Column } from '../../output/render-table.ts';
import type { Terminal } from '../../terminal.ts';
import { wholeNumber } from '../../whole-number.ts';
import type { ParticipantOptions, ProbedParticipant } from './probed-participant.ts';
import { runProbe, type CheckResult } from './run-probe.ts';

type ProbeArgs = Readonly<{
  action: string;
  undo: string;
  proto?: string;
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
        'test a participant with duplicate, late, concurrent and out-of-order calls; executes the action and its ' +
          'undo, so use a test system',
      )
      .argument('<url>', 'base URL of the participant: http, https, grpc or grpcs', readUrl)
      .requiredOption(
        '--action <method>',
        "method of the action: 'POST /reserve', or shop.v1.Inventory.Reserve",
      )
      .requiredOption('--undo <method>', 'method of the undo')
      .option('--proto <path>', '.proto file, or a folder of them (default: gRPC server reflection)')
      .addOption(new Option('--body <json>', 'request body of the action').conflicts('bodyFile'))
      .option('--body-file <file>', 'request body of the action, from a file; - is standard input')
      .option('--undo-body <json>', 'request body of the undo (default: the same)')
      .option('--other-body <json>', 'a different valid request body (default: the body with one more field)')
      .option('--header <header>', "header such as 'authorization: Bearer …'; may be repeated", addHeader, [])
      .option('--timeout <seconds>', 'timeout of one call, including polls', wholeNumber(1, 3600), 30)
      .option('--json', 'print JSON'),
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
  const undoBody = args.undoBody === undefined ? body : parseJson(args.undoBody, 'the undo body');
  const isGrpc = url.protocol.startsWith('grpc');
  const otherBody = otherBodyOf(args.otherBody, body, isGrpc);
  const readMethod = isGrpc ? readGrpcMethod : readHttpMethod;
  const participant = await openParticipant(args.proto, {
    url,
    methods: { action: readMethod(args.action), undo: readMethod(args.undo) },
    bodies: { action: body, undo: undoBody },
    headers: Object.fromEntries(args.header),
    timeoutMs: args.timeout * 1000,
  });
  const results: CheckResult[] = [];
  try {
    for await (const result of runProbe(participant, otherBody)) results.push(result);
  } finally {
    await participant.close();
  }
  show(print, url, results, args.json === true);
  if (results.some(({ result }) => result !== 'pass')) throw new SilentFailure();
}

/** Loaded on demand, to keep other commands fast. */
async function openParticipant(
  proto: string | undefined,
  options: ParticipantOptions,
): Promise<ProbedParticipant> {
  if (options.url.protocol.startsWith('grpc')) {
    const { openGrpcParticipant } = await import('./grpc-participant.ts');
    return openGrpcParticipant({ ...options, proto });
  }
  const { openHttpParticipant } = await import('./http-participant.ts');
  return openHttpParticipant(options);
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
      tone: ({ result }) => tones[result],
    },
    { title: 'RULE', text: ({ rule }) => rule },
  ];
  print.table(columns, results);
  for (const { check, result, found } of results)
    if (result === 'fail') print.line(`${check}: ${escapeText(found ?? '')}`);
  print.note(`${figures.passed} passed, ${figures.failed} failed, ${figures.skipped} skipped`);
}

function otherBodyOf(text: string | undefined, body: unknown, isGrpc: boolean): unknown {
  if (text !== undefined) return parseJson(text, 'the other body');
  if (isGrpc) throw new UsageError('gRPC needs --other-body: a different valid request body');
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (!isObject) throw new UsageError('the body is not an object: also give --other-body');
  return { ...body, redrive_probe: 'another body' };
}

function readUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^(https?|grpcs?):$/.test(url.protocol) && url.host !== '') return url;
  throw new InvalidArgumentError('Use a URL such as http://localhost:3000 or grpc://localhost:3000.');
}

/** The default verb is POST. */
function readHttpMethod(text: string): string {
  const [, verb = 'POST', path] = /^(?:(GET|POST|PUT|PATCH|DELETE) +)?(\/[^\s#]*)$/.exec(text) ?? [];
  if (path === undefined)
    throw new UsageError(`not a method and path such as 'POST /reserve': ${escapeText(text)}`);
  return `${verb} ${path}`;
}

function readGrpcMethod(text: string): string {
  if (/^\w+(\.\w+)+$/.test(text)) return text;
  throw new UsageError(`not a method such as shop.v1.Inventory.Reserve: ${escapeText(text)}`);
}

function addHeader(text: string, before: ProbeArgs['header']): ProbeArgs['header'] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([\t\x20-\x7e]*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("Use the form 'name: value'.");
  return [...before, [name.toLowerCase(), value]];
}
