import { StringDecoder } from 'node:string_decoder';
import { ApiError } from '../../client-http/index.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import type { TakeBytes } from '../api/send-request.ts';
import { withProgress } from '../output/progress.ts';
import { sliceCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';

const route = 'GET /api/v1/audit/export';
/** Without a part of the answer in this time, the server is lost. It gives up on a reader after a minute. */
const partMs = 60_000;
/** No event is nearly as long: the server limits every text in it. */
const maxLineLength = 4 * 1024 * 1024;

export const afterBlock: Input = {
  flags: '--after-block <number>',
  text: 'only what follows this block (default: everything)',
  parse: wholeNumber(0, Number.MAX_SAFE_INTEGER),
};

export const exportLog = sliceCommand(
  {
    name: 'export',
    route,
    hasOwnProgress: true,
    description: 'print the sealed log as lines of JSON: events, each round followed by its blocks',
    inputs: [afterBlock],
    examples: [
      'redrive audit export > audit.ndjson',
      'redrive audit export --after-block 1042 >> audit.ndjson',
    ],
  },
  async (session, values, terminal) => {
    const asJson = values['json'] === true;
    const lines = createLines(terminal);
    const progress = { label: 'exporting', unit: 'events', countDone: lines.countEvents, isQuiet: asJson };
    const call = { ...requestOf(route, [afterBlock], values), timeoutMs: partMs };
    try {
      await withProgress(terminal, progress, () => session.stream(call, lines.take));
    } catch (error) {
      // Whole lines have been written, so a script can go on from here.
      if (lines.lastBlock() !== null)
        session.print.note(`incomplete: continue with --after-block ${lines.lastBlock()}`);
      throw error;
    }
    if (asJson) return;
    const next = lines.lastBlock() === null ? '' : `; next: --after-block ${lines.lastBlock()}`;
    session.print.note(`exported ${lines.countEvents()} events${next}`);
  },
);

/** Writes whole lines only, so that what breaks off can be continued, and knows how far they go. */
function createLines({ stdout }: Terminal) {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let events = 0;
  let block: number | null = null;
  const take: TakeBytes = async (bytes) => {
    const lines = `${rest}${decoder.write(bytes)}`.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxLineLength) throw notRedrive();
    for (const line of lines) {
      const { type, block: sealed } = readLine(line);
      if (type === 'event') events += 1;
      else block = sealed ?? block;
    }
    if (lines.length > 0) await write(lines);
  };
  const write = async (lines: readonly string[]): Promise<void> => {
    const shown = stdout.isTTY === true ? lines.map(escapeText) : lines;
    const isTaken = stdout.write(`${shown.join('\n')}\n`);
    if (isTaken === false) await new Promise<void>((resolve) => void stdout.once?.('drain', resolve));
  };
  return { take, countEvents: () => events, lastBlock: () => block };
}

type Line = Readonly<{ type: string; block?: number }>;

function readLine(line: string): Line {
  try {
    const read = JSON.parse(line) as Line;
    if (read.type === 'event' || read.type === 'seal') return read;
  } catch {}
  throw notRedrive();
}

function notRedrive(): ApiError {
  return new ApiError('the answer is not an audit log: check --url or REDRIVE_URL');
}
