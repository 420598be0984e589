import { writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { runCli } from '../src/cli/run-cli.ts';
import { startDevProcess } from '../tests/support/dev-process.ts';
import { eventually } from '../tests/support/eventually.ts';

/**
 * Makes docs/images/terminal.svg: starts `npm start`, runs the commands below against it, and draws what they print.
 * `node_modules/.bin/node tools/terminal-picture.ts`, whenever the output of these commands changes.
 */
const columns = 118;
const file = new URL('../docs/images/terminal.svg', import.meta.url);

const dev = await startDevProcess();
try {
  const pending = await eventually(
    async () => {
      const [dead, id] = [await run(['outbox', 'list', '--needs-attention']), await firstGiftCard()];
      if (!/ dead /.test(dead) || id === undefined) throw new Error('the demo has not failed yet');
      return id;
    },
    { withinMs: 120_000 },
  );
  const commands = [
    'dlq topics',
    'dlq list orders.v1 --page-size 4',
    `dlq retry ${pending}`,
    `dlq history ${pending}`,
    'outbox list --needs-attention --page-size 2',
    'saga list --page-size 4',
  ];
  const lines: string[] = [];
  for (const command of commands) {
    const output = await eventually(async () => {
      const said = await run(command.split(' '));
      // The consumer fails again and the message comes back, a moment after its retry.
      if (command.startsWith('dlq history') && !said.includes('came_back')) throw new Error(said);
      return said;
    });
    lines.push(`$ npx redrive ${command}`, ...output.trimEnd().split('\n'), '');
  }
  await writeFile(file, drawn(lines.slice(0, -1)));
} finally {
  await dev.stop();
}

async function run(args: readonly string[]): Promise<string> {
  let said = '';
  const output = {
    write: (text: string | Uint8Array): void => void (said += text.toString()),
    isTTY: true,
    columns,
  };
  const env = { REDRIVE_URL: dev.url, USER: 'on-call', NO_COLOR: '1' };
  const code = await runCli(args, { env, stdin: new PassThrough(), stdout: output, stderr: output });
  if (code !== 0) throw new Error(`redrive ${args.join(' ')} ended with ${code}: ${said}`);
  return said;
}

/** A message that fails again when it is retried, so that its history has something to show. */
async function firstGiftCard(): Promise<string | undefined> {
  const lines = (await run(['dlq', 'list', 'orders.v1', '--status', 'PENDING'])).split('\n');
  return lines.find((line) => line.includes('NoCarrierError'))?.split(' ')[0];
}

/** A card with a background of its own, which reads the same on light and dark pages. */
function drawn(lines: readonly string[]): string {
  const [charWidth, lineHeight, margin, bar] = [7.8, 18, 20, 34];
  const width = Math.ceil(Math.max(...lines.map((line) => line.length)) * charWidth + 2 * margin);
  const height = lines.length * lineHeight + bar + 2 * margin - 8;
  const texts = lines.map((line, index) => {
    const y = bar + margin + 8 + index * lineHeight;
    return line === '' ? '' : `  <text x="${margin}" y="${y}"${styleOf(line)}>${escaped(line)}</text>\n`;
  });
  const dots = ['#f87171', '#fbbf24', '#34d399'].map(
    (fill, index) => `<circle cx="${22 + index * 20}" cy="19" r="6" fill="${fill}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
  <title id="title">Output of Redrive commands while npm start runs</title>
  <rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="10" fill="#0f172a" stroke="#475569"/>
  ${dots.join('')}
  <g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#cbd5e1" xml:space="preserve">
${texts.join('')}  </g>
</svg>
`;
}

function styleOf(line: string): string {
  if (line.startsWith('$ ')) return ' fill="#7dd3fc" font-weight="600"';
  return /^[A-Z][A-Z ]+$/.test(line) ? ' fill="#94a3b8"' : '';
}

function escaped(line: string): string {
  return line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
