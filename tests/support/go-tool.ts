import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { goToolPath, whyNoGoTools, type GoTool } from '../../tools/go/go-tools.ts';

const run = promisify(execFile);

const noGo = await whyNoGoTools();
const missing = noGo ?? (existsSync(goToolPath('helm')) ? undefined : 'run this through `npm test`');

if (missing !== undefined)
  process.stderr.write(
    `\n*** THE TESTS WITH HELM, COMPOSE AND CONSUL-TEMPLATE ARE SKIPPED: ${missing} ***\n\n`,
  );
// Debian has no Go that is new enough, so a machine without it passes. Tools that Go could have built must be there.
if (noGo === undefined && missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

/** Options for tests that need a program that is built with Go: skipped, with the reason, where there is none. */
export const needsGoTools = missing === undefined ? {} : { skip: missing };

export type ToolRun = Readonly<{ code: number; out: string; err: string }>;

export async function runGoTool(tool: GoTool, args: readonly string[]): Promise<ToolRun> {
  try {
    const { stdout, stderr } = await run(goToolPath(tool), args, { maxBuffer: 64 * 1024 * 1024 });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}
