import type { Cause } from './cause.ts';

/** A function's line is followed by an indented line with its file. */
const FRAME = /^(\S[^\n]{0,1023})\n\t([^\n]{1,1024}\.go):\d+/gm;

export function isGoStack(stack: string): boolean {
  return /\n\t[^\n]{1,1024}\.go:\d+/.test(stack);
}

/**
 * The innermost frame of the user's own code. Frames above a `panic(` belong to what recovered from it. Errors that
 * carry a stack (`%+v`) print it from the innermost call outwards.
 */
export function goFrame(stack: string): string | undefined {
  const panicked = stack.lastIndexOf('\npanic(');
  for (const [, call = '', path = ''] of stack.slice(Math.max(panicked, 0)).matchAll(FRAME)) {
    if (call.startsWith('created by ') || isLibrary(call, path)) continue;
    return functionName(call);
  }
  return undefined;
}

/** The standard library, the module cache and vendored modules; `-trimpath` leaves no folder before the package. */
function isLibrary(call: string, path: string): boolean {
  if (call.startsWith('main.')) return false;
  if (call.startsWith('runtime.') || call.startsWith('panic(')) return true;
  if (/\/go[\d.]*\/src\/|\/pkg\/mod\/|\/vendor\/|@v\d/.test(path)) return true;
  return !/^(?:\/|[A-Za-z]:)/.test(path) && !(path.split('/', 1)[0] ?? '').includes('.');
}

/** `github.com/acme/orders/store.(*Repo).Save.func1(0xc000012345)` is `github.com/acme/orders/store.(*Repo).Save`. */
function functionName(call: string): string {
  const open = call.endsWith(')') ? call.lastIndexOf('(') : -1;
  const name = open > 0 && call[open - 1] !== '.' ? call.slice(0, open) : call;
  return name.replaceAll(/\.(?:func|gowrap)\d+(?:\.\d+)*/g, '').replaceAll('[...]', '');
}

/** An error with a stack begins with the root's message; a panic says its value in its first line. */
export function rootOfGoStack(stack: string): Cause | undefined {
  const panic = /^panic: ([^\n]{1,4096})/m.exec(stack)?.[1];
  if (panic !== undefined) return { class: undefined, message: panic.replace(/ \[recovered\].*$/, '') };
  const [heading = ''] = stack.split(/\n?^\S[^\n]{0,1023}\n\t[^\n]{1,1024}\.go:\d+/m, 1);
  const message = heading.trim();
  return message === '' || message.startsWith('goroutine ') ? undefined : { class: undefined, message };
}
