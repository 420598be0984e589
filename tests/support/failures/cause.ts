import type { FingerprintedError } from '../../../src/kernel/fingerprint/fingerprint.ts';
import type { VariedValues } from './varied-values.ts';

/** A cause of failures, as one language reports it: the error, and the calls below it, innermost first. */
export type FailureCause = Readonly<{
  name: string;
  class: string;
  message: (values: VariedValues) => string;
  /** As the language names them; `lib:` marks calls of libraries. */
  calls: readonly string[];
}>;

/** How a language prints a failure; `wrappers` is how many errors of libraries are around it. */
export type FailurePrinter = (
  cause: FailureCause,
  values: VariedValues,
  wrappers: number,
) => FingerprintedError;

export function cause(
  name: string,
  className: string,
  message: FailureCause['message'],
  ...calls: readonly string[]
): FailureCause {
  return { name, class: className, message, calls };
}
