/** An error as Java prints it. */
export type JavaCause = Readonly<{ class: string | undefined; message: string | undefined }>;

/** The errors of a stack trace, from the one that was caught to the root. */
export function causesOfStack(stack: string): readonly JavaCause[] {
  return stack.split(CAUSED_BY).map(errorOfTrace);
}

/** The error at the end of a stack trace's chain of causes; that of the first line if there is no chain. */
export function rootOfStack(stack: string | undefined): JavaCause | undefined {
  return stack === undefined ? undefined : errorOfTrace(afterLast(stack, CAUSED_BY) ?? stack);
}

const CAUSED_BY = '\nCaused by: ';

/** The text before the first frame. */
function errorOfTrace(trace: string): JavaCause {
  const frames = /\n\t(?:at |\.\.\. )/.exec(trace);
  return causeOf(frames === null ? trace : trace.slice(0, frames.index));
}

export function afterLast(text: string, mark: string): string | undefined {
  const at = text.lastIndexOf(mark);
  return at < 0 ? undefined : text.slice(at + mark.length);
}

/** Parses the output of Java's `Throwable.toString`: `<class>: <message>`, or the class alone. */
export function causeOf(text: string): JavaCause {
  const trimmed = text.trim();
  const className = /^[\w$]+(?:\.[\w$]+)+(?=: |:?$)/.exec(trimmed)?.[0];
  const message = className === undefined ? trimmed : trimmed.slice(className.length + 1).trim();
  return { class: className, message: message === '' ? undefined : message };
}
