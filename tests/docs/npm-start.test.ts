import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import {
  nodes,
  readersEnv,
  root,
  runCommand,
  startCommand,
  startDevProcess,
  type DevProcess,
} from '../support/dev-process.ts';
import { blocksOf, readDocBlocks, type DocBlock } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { runShellBlock, runTyped } from './run-shell-block.ts';
import { commandsIn } from './shell-blocks.ts';

/**
 * Every command of the documents runs against one `npm start`, and prints what the document shows. Programs
 * of examples run as their READMEs say, in a shell with npx, on the Node of the machine and on that of the project.
 */

/** Needs nothing but `npm start`. Other programs, and commands for servers of one's own, are parsed by blocks.test.ts. */
const runsHere = /^(npx redrive (dlq|outbox|jobs|saga) |curl .*127\.0\.0\.1:8080)/;

/** What each command prints; a new command fails here until it has an entry. */
const expected: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  'mail-worker': {
    'npx node examples/mail-worker/mail-worker.ts': /^to ada@example\.com: Welcome$/m,
    'npx node examples/mail-worker/sign-up-customers.ts ada@example.com bob@example.invalid':
      /^signed up bob@example\.invalid; job [\da-f-]{36} sends the mail$/m,
    'npx redrive jobs list --queue mail': /dead_letter.*the mail server refuses bob@example\.invalid: 550/,
  },
  'order-participants': {
    'npx node examples/order-participants/order-participants.ts':
      /^inventory http[^]*^payment http[^]*^shipping http/m,
    [`npx redrive saga probe http://127.0.0.1:4101 --action 'POST /reserve' --undo 'POST /release' --body '{"order_id":"o-1","sku":"shoe","qty":1}'`]:
      /\d+ passed, 0 failed/,
  },
  'orders-pipeline': {
    'npx redrive dlq topics': /^orders\.v1 /m,
    'npx redrive dlq list orders.v1 --status PENDING': / PENDING .* orders\.v1 /,
    'npx redrive dlq retry-all orders.v1 --yes': /^\d+ messages? retried in topic orders\.v1$/m,
    'npx redrive dlq redrive list --automatic false': / stopped .*the bug should be fixed/,
    'npx redrive dlq policies list': /^bank +active/m,
    'npx redrive dlq redrive list --policy bank': / finished /,
    'npx redrive dlq list --has-edit': / RESOLVED .* orders\.v1 /,
  },
  'trading-partner': {
    'npx redrive outbox list': / sent .* broker /,
    'npx redrive outbox list --needs-attention': / dead .*USDJPX is not traded here/,
    'npx redrive outbox destinations': /^broker +http +enforced/m,
  },
  summarizer: {
    'npx redrive jobs queues': /^summarize /m,
    "npx redrive jobs requeue --queue summarize --error 'timed out' --preview": /timed out/,
    'npx redrive jobs dead': / summarize .*timed out after 3000 ms/,
  },
  fulfilment: {
    'npx redrive saga list': / COMPLETED .* fulfil-order/,
    'npx redrive saga list --needs-attention': /./,
    'npx redrive saga check examples/fulfilment/fulfil-order.yaml': /reserve[^]*charge[^]*dispatch/,
  },
};

/** What the programs print once they are ready. */
const ready = /^(waiting for mails|shipping http.*)$/m;
/** A first answer may take until the traffic of the demo has produced it. */
const patiently = { withinMs: 60_000 };

let dev: DevProcess;

before(async () => {
  dev = await startDevProcess();
});
after(() => dev?.stop());

const blocks = (await readDocBlocks()).filter(
  ({ language, text }) =>
    ['sh', 'console'].includes(language) &&
    commandsIn(language, text).every((command) => runsHere.test(command)),
);
const picture: DocBlock = {
  id: 'docs/images/terminal.svg',
  language: 'console',
  text: await textOfPicture(),
};

describe('a block of commands works as it is written', () => {
  for (const block of [picture, ...blocks]) test(block.id, () => runShellBlock(block, dev));
});

test('the README and the guides have blocks that run', () => {
  const documents = new Set(blocks.map(({ id }) => id.split(' > ')[0]));
  for (const guide of ['dead-letters', 'jobs', 'outbox', 'sagas'])
    assert.ok(documents.has(`docs/guides/${guide}.md`), guide);
  assert.equal(blocks.filter(({ id }) => id.startsWith('README.md')).length, 2);
});

/** The lines that tools/terminal-picture.ts has drawn. */
async function textOfPicture(): Promise<string> {
  const svg = await readFile(`${root}docs/images/terminal.svg`, 'utf8');
  const lines = [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = '']) => line);
  return lines.join('\n').replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

async function commandsOf(example: string): Promise<readonly string[]> {
  const file = `examples/${example}/README.md`;
  const blocks = blocksOf(file, await readFile(`${root}${file}`, 'utf8'));
  return blocks.filter(({ language }) => language === 'sh').flatMap(({ text }) => text.split('\n'));
}

test('every example has a README with commands, and each command has its expected output', async () => {
  const entries = await readdir(`${root}examples`, { withFileTypes: true });
  const examples = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .toSorted();
  assert.deepEqual(examples, Object.keys(expected).toSorted());
  for (const example of examples) {
    const commands = (await commandsOf(example)).filter((command) => command !== 'npm start');
    assert.deepEqual(commands, Object.keys(expected[example] ?? {}), example);
  }
});

// At once: they mostly wait for the traffic of the demo.
describe('the traffic of npm start', { concurrency: true }, () => {
  for (const example of ['orders-pipeline', 'summarizer', 'fulfilment', 'trading-partner'])
    test(`the commands of examples/${example} show what its README describes`, async () => {
      for (const [command, output] of Object.entries(expected[example] ?? {}))
        await eventually(async () => assert.match(await runTyped(command, dev), output), patiently);
    });
});

for (const [name, path] of Object.entries(nodes))
  describe(`on ${name}`, () => {
    for (const example of ['mail-worker', 'order-participants'])
      test(`examples/${example} runs by the commands of its README`, () => runLibraryExample(example, path));
  });

async function runLibraryExample(example: string, path: string): Promise<void> {
  await forgetCustomers();
  // Port 0: any free port. The services print it.
  const env = readersEnv(path, { REDRIVE_URL: dev.url, DATABASE_URL: dev.databaseUrl, PORT: '0' });
  const [[program, printed] = never(), ...others] = Object.entries(expected[example] ?? {});
  const server = startCommand(program, env);
  try {
    await eventually(() => assert.match(server.said(), ready), patiently);
    const inventory = /^inventory (http\S+)$/m.exec(server.said())?.[1] ?? '';
    for (const [command, output] of others) {
      const placed = command.replace('http://127.0.0.1:4101', inventory);
      await eventually(async () => assertRan(await runCommand(placed, env), output), patiently);
    }
    await eventually(() => assert.match(server.said(), printed));
  } finally {
    await server.stop();
  }
}

function never(): never {
  return assert.fail('the README has no command');
}

/** Each run starts with customers who have not signed up. */
async function forgetCustomers(): Promise<void> {
  const client = new Client({ connectionString: dev.databaseUrl });
  await client.connect();
  await client.query('DROP TABLE IF EXISTS customers');
  await client.end();
}

function assertRan({ code, said }: Readonly<{ code: number | null; said: string }>, output: RegExp): void {
  assert.equal(code, 0, said);
  assert.match(said, output);
}
