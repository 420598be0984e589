import type { Readable } from 'node:stream';

/** Standard output or standard error. */
export type Output = Readonly<{
  /** False if it holds back what was written, until it emits `drain`. */
  write(data: string | Uint8Array): unknown;
  once?: (event: 'drain', listener: () => void) => unknown;
  isTTY?: boolean;
  /** Only on a terminal. */
  columns?: number;
  rows?: number;
}>;

/** The part of the process that commands use; `process` is one. */
export type Terminal = Readonly<{
  env: NodeJS.ProcessEnv;
  stdin: Readable & Readonly<{ isTTY?: boolean }>;
  stdout: Output;
  stderr: Output;
  /** Ctrl-C, where the process does not get it as a signal. */
  interrupted?: AbortSignal;
}>;
