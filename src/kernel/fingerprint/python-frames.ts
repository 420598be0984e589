import { causeOf } from './cause.ts';
import type { ReadStack } from './read-stack.ts';

const LINE_MAX_LENGTH = 1024;

export function isPythonStack(stack: string): boolean {
  return stack.includes('Traceback (most recent call last):');
}

/**
 * Python prints the innermost call last, and a chain of exceptions beginning with the first. An exception that was raised
 * `from` another one wraps it. One that was raised while another was handled is a failure of its own.
 */
export function readPythonStack(stack: string): ReadStack {
  const [current = ''] = stack.split(IMPLICIT).slice(-1);
  const sections = current.split(EXPLICIT);
  const frame = sections.map(lastUserFrame).find((found) => found !== undefined);
  return { rootCause: sections.length > 1 ? causeOf(headingOf(sections[0] ?? '')) : undefined, frame };
}

const IMPLICIT = 'During handling of the above exception, another exception occurred:';
const EXPLICIT = 'The above exception was the direct cause of the following exception:';

/** The exception is what is not indented after the frames. */
function headingOf(section: string): string {
  const lines = section.split('\n');
  const lastFrame = lines.findLastIndex((line) => line.startsWith('  '));
  return lines.slice(lastFrame + 1).join('\n');
}

function lastUserFrame(section: string): string | undefined {
  return section
    .split('\n')
    .toReversed()
    .map((line) => pythonFrame(line.slice(0, LINE_MAX_LENGTH)))
    .find((frame) => frame !== undefined);
}

/** Groups of exceptions draw a margin before their frames. */
function pythonFrame(line: string): string | undefined {
  const call = /^[ |]{0,80}File "([^"]+)", line \d+, in (.+)$/.exec(line);
  const path = call?.[1] ?? '';
  if (path === '' || LIBRARY.test(path)) return undefined;
  return `${call?.[2]?.trim() ?? ''}@${path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)}`;
}

const LIBRARY = /[\\/](?:site-packages|dist-packages|lib[\\/]python[\d.]*|Lib)[\\/]|^</;
