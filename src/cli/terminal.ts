import type { Readable } from 'node:stream';

/** One of the two streams that a command writes to. */
export type Output = Readonly<{
  write(data: string | Uint8Array): unknown;
  isTTY?: boolean;
  /** Of a terminal only. */
  columns?: number;
}>;

/** What a command has of the process that it runs in; the process itself is one. */
export type Terminal = Readonly<{
  env: NodeJS.ProcessEnv;
  stdin: Readable & Readonly<{ isTTY?: boolean }>;
  stdout: Output;
  stderr: Output;
}>;
