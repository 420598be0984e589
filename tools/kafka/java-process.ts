import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

export type JavaResult = Readonly<{ stdout: string; stderr: string; code: number | null }>;

export type JavaServer = Readonly<{
  process: ChildProcess;
  exited: Promise<void>;
  /** Sends the signal and waits until the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}>;

const quiet = [
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dorg.slf4j.simpleLogger.logFile=System.err',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
];

const toolTimeoutMs = 60_000;

/** Runs a Java class (or a single `.java` file) on the Kafka jars, to its end. */
export async function runJava(
  libs: string,
  program: string,
  args: readonly string[],
  stdin = '',
): Promise<JavaResult> {
  const flags = [...quiet, '-Dorg.slf4j.simpleLogger.defaultLogLevel=error', '-cp', join(libs, '*')];
  const child = spawn('java', [...flags, program, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: toolTimeoutMs,
    killSignal: 'SIGKILL',
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  // A program that ends without reading its input closes the pipe; its exit code tells the story.
  child.stdin.on('error', () => {}).end(stdin);
  const [code] = (await once(child, 'close')) as [number | null];
  return { stdout, stderr, code };
}

/** Waits for the end of a pipe that only we hold open; then the server goes, and the folder that is only its own. */
const guardScript = 'trap "" INT TERM HUP; read -r _; kill -9 "$1" 2>/dev/null; [ -z "$2" ] || rm -rf "$2"';

/**
 * Starts a Java server whose output goes to a file. It never outlives this process: an exit handler ends it, and,
 * for the case that this process is killed, a guard of its own does.
 */
export function startJava(
  libs: string,
  args: readonly string[],
  files: Readonly<{ log: string; removeAfterwards?: string | undefined }>,
): JavaServer {
  const log = openSync(files.log, 'a');
  const flags = ['-Xms96m', '-Xmx320m', ...quiet, '-cp', join(libs, '*')];
  const child = spawn('java', [...flags, ...args], { stdio: ['ignore', log, log] });
  closeSync(log);
  const guarded = [String(child.pid), files.removeAfterwards ?? ''];
  const guard = spawn('sh', ['-c', guardScript, 'guard', ...guarded], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const untilExit = async (): Promise<void> => {
    await once(child, 'exit');
    process.off('exit', endWithUs);
    guard.kill('SIGKILL');
  };
  const exited = untilExit();
  for (const started of [child, guard]) started.unref();
  return {
    process: child,
    exited,
    end: async (signal) => {
      child.ref();
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exited;
    },
  };
}
