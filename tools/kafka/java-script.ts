import { fileURLToPath } from 'node:url';
import { javaTool } from './start-kafka.ts';

const program = fileURLToPath(new URL('java/KafkaScript.java', import.meta.url));

/** Runs commands with the real Java clients (see KafkaScript.java) and gives the lines they print, split into words. */
export async function runJavaScript(
  brokers: string,
  commands: readonly (readonly (string | number | Buffer | null)[])[],
): Promise<readonly (readonly string[])[]> {
  const script = commands.map((words) => words.map(word).join('\t')).join('\n');
  const { stdout, stderr, code } = await javaTool(program, [brokers], script);
  if (code !== 0) throw new Error(`the Java clients failed with code ${code}: ${stderr}`);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t'));
}

function word(value: string | number | Buffer | null): string {
  if (value === null) return '-';
  return Buffer.isBuffer(value) ? value.toString('base64') : String(value);
}
