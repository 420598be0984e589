import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';

/** Prometheus' own tool for rules; of Debian's package `prometheus`. */
export const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

type Ended = Readonly<{ ok: boolean; output: string }>;

export async function runPromtool(...args: readonly string[]): Promise<Ended> {
  try {
    const { stdout, stderr } = await promisify(execFile)('promtool', args, { maxBuffer: 64 << 20 });
    return { ok: true, output: stdout + stderr };
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return { ok: false, output: stdout + stderr };
  }
}
