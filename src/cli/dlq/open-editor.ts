import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { escapeText } from '../../kernel/escape-text.ts';
import { AppError, messageOf } from '../../kernel/errors.ts';
import { UsageError } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';

export type EditedText = Readonly<{
  text: string;
  file: string;
  remove: () => Promise<void>;
}>;

/** Opens the text in $VISUAL or $EDITOR, in a file that only the user can read, and waits for the editor to end. */
export async function openEditor({ env }: Terminal, name: string, text: string): Promise<EditedText> {
  const editor = env['VISUAL'] || env['EDITOR'] || 'vi';
  const folder = await mkdtemp(join(env['TMPDIR'] || tmpdir(), 'redrive-edit-'));
  const file = join(folder, name);
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await writeFile(file, text, { mode: 0o600 });
    await run(editor, file, env);
    const edited = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(file));
    return { text: withoutAddedEnd(text, edited), file, remove };
  } catch (error) {
    await remove();
    if (error instanceof TypeError) throw new UsageError('the edited text is not UTF-8');
    throw error;
  }
}

/** As git does: the shell splits what the variable holds, and gets the file as an argument. */
async function run(editor: string, file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, file], { stdio: 'inherit', env });
  const [code, signal] = (await once(child, 'exit').catch((error: unknown) => {
    throw failure(editor, messageOf(error));
  })) as [number | null, string | null];
  if (code !== 0) throw failure(editor, `it ended with ${signal ?? `exit code ${code}`}`);
}

function failure(editor: string, why: string): AppError {
  return new AppError(
    'SYS_CLI_EDITOR_FAILED',
    'conflict',
    `the editor ${escapeText(editor)} failed: ${why}; set EDITOR, or give the value with --value-file`,
  );
}

/** Most editors end a file with a line end, also where the value had none. */
function withoutAddedEnd(before: string, after: string): string {
  return !before.endsWith('\n') && after.endsWith('\n') ? after.slice(0, -1) : after;
}
