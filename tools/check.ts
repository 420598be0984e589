import { spawn } from 'node:child_process';

/**
 * `npm run check`: the static checks one after the other, and the unit tests beside them. A check prints what it found
 * when it has ended; the first static check that fails ends its row.
 */
const rows = [
  ['format:check', 'lint', 'types', 'dead-code'],
  ['test:unit', 'test:console'],
];

const failed = (await Promise.all(rows.map(runRow))).flat();
if (failed.length > 0) {
  process.stderr.write(`failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}

async function runRow(scripts: readonly string[]): Promise<readonly string[]> {
  for (const script of scripts) if (!(await run(script))) return [script];
  return [];
}

async function run(script: string): Promise<boolean> {
  const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 'pipe', 'pipe'] });
  const output: Buffer[] = [];
  const keep = (bytes: Buffer): void => void output.push(bytes);
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const code = await new Promise<number | null>((resolve, reject) =>
    child.once('error', reject).once('close', resolve),
  );
  if (code !== 0) process.stderr.write(`\n${script}:\n`);
  process.stdout.write(Buffer.concat(output));
  return code === 0;
}
