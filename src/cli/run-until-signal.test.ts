import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';

const soon = { timeout: 20_000 } as const;
const module = new URL('run-until-signal.ts', import.meta.url).href;

/** A process that runs a system whose stop takes as long as `stop` does, and says what happens. */
function program({ stop = '', followsParent = false }: { stop?: string; followsParent?: boolean }): string {
  return `
    import { listenForStop, runUntilSignal } from ${JSON.stringify(module)};
    const stopAsked = listenForStop({ followsParent: ${followsParent} });
    const alive = setInterval(() => {}, 1000);
    stopAsked.addEventListener('abort', () => console.log('asked'));
    console.log('pid ' + process.pid);
    await runUntilSignal({ stop: async () => { ${stop} } }, { stopAsked, beforeStop: async () => console.log('before') });
    clearInterval(alive);
    console.log('stopped');
  `;
}

type Running = Readonly<{ child: ChildProcess; line: () => Promise<string>; exited: Promise<number | null> }>;

function run(context: TestContext, command: string, args: readonly string[]): Running {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  context.after(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  return { child, line: async () => String((await lines.next()).value), exited };
}

const nodeArgs = (source: string): readonly string[] => ['--input-type=module', '--eval', source];

test('the first signal stops in order, and its echo by npm is ignored', soon, async (t) => {
  const stop = `
    const mayEnd = new Promise((resolve) => process.once('SIGUSR2', resolve));
    console.log('stopping');
    await mayEnd;
  `;
  const { child, line, exited } = run(t, process.execPath, nodeArgs(program({ stop })));
  await line();
  child.kill('SIGINT');
  assert.deepEqual([await line(), await line(), await line()], ['asked', 'before', 'stopping']);
  child.kill('SIGINT');
  child.kill('SIGUSR2');
  assert.equal(await line(), 'stopped');
  assert.equal(await exited, 0);
});

test('the end of the embedded database stops the process, which fails and says so', soon, async (t) => {
  const source = `
    import { runUntilSignal } from ${JSON.stringify(module)};
    const databaseEnded = new Promise((resolve) => setTimeout(resolve, 10));
    const stop = async () => console.log('stopping');
    await runUntilSignal({ stop, databaseEnded }).catch(({ code, kind }) => {
      console.log(code, kind);
      process.exitCode = 69;
    });
    console.log('ended');
  `;
  const { line, exited } = run(t, process.execPath, nodeArgs(source));
  assert.deepEqual(
    [await line(), await line(), await line()],
    ['stopping', 'SYS_EMBEDDED_ENDED unavailable', 'ended'],
  );
  assert.equal(await exited, 69);
});

test('a second signal ends a stop that hangs', soon, async (t) => {
  const stop = 'await new Promise(() => {});';
  const { child, line, exited } = run(t, process.execPath, nodeArgs(program({ stop })));
  await line();
  const asking = setInterval(() => child.kill('SIGINT'), 100);
  t.after(() => clearInterval(asking));
  assert.equal(await exited, 130);
});

test('a process that follows its parent stops when the parent ends', soon, async (t) => {
  const source = program({ followsParent: true });
  const shell = run(t, 'sh', ['-c', '"$0" "$@"; exit $?', process.execPath, ...nodeArgs(source)]);
  const pid = Number((await shell.line()).slice('pid '.length));
  t.after(() => isAlive(pid) && process.kill(pid, 'SIGKILL'));
  shell.child.kill('SIGKILL');
  assert.deepEqual(
    [await shell.line(), await shell.line(), await shell.line()],
    ['asked', 'before', 'stopped'],
  );
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
