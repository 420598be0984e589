import { firstAtFrame } from './at-frames.ts';
import { causeOf, type Cause } from './cause.ts';
import { goFrame, isGoStack, rootOfGoStack } from './go-frames.ts';
import { isPythonStack, readPythonStack } from './python-frames.ts';

/** How much of a stack is read: as much as is stored of a dead letter's. */
const STACK_MAX_LENGTH = 65_536;

export type ReadStack = Readonly<{
  /** The innermost cause, if the stack has a chain of causes; otherwise the failure describes itself. */
  rootCause: Cause | undefined;
  /** The frame of the user's own code nearest to the root cause. */
  frame: string | undefined;
}>;

/**
 * Reads stacks of the JVM, .NET, Node, Python and Go. Each prints a chain of causes in its own order; wrappers that
 * frameworks and libraries add, in varying number, do not change what is read here.
 */
export function readStack(stack: string): ReadStack {
  const text = stack.slice(0, STACK_MAX_LENGTH);
  if (isPythonStack(text)) return readPythonStack(text);
  if (isGoStack(text)) return { rootCause: rootOfGoStack(text), frame: goFrame(text) };
  return readAtStack(text);
}

/**
 * JVM: `Caused by:` begins a section, and the last one is the root. Node: `[cause]:`, indented; libraries write
 * `caused by:`. .NET: all causes are before the first frame, after `--->`, and the frames of the root come first.
 */
function readAtStack(text: string): ReadStack {
  const sections = text.split(/\n(?:Caused by: |caused by: | {2,20}\[cause\]: )/);
  const root = sections.at(-1) ?? '';
  const [heading = ''] = root.split(/\n(?:\t| {2,20})\s{0,20}(?:at |\.\.\. |--- )/, 1);
  const inner = heading.lastIndexOf('---> ');
  const isChain = sections.length > 1 || inner >= 0;
  const frame = sections
    .toReversed()
    .map((section) => firstAtFrame(section))
    .find((found) => found !== undefined);
  return {
    rootCause: isChain ? causeOf(inner < 0 ? heading : heading.slice(inner + 5)) : undefined,
    frame,
  };
}
