/**
 * How one attempt at an item ended, as every slice says it. A value, not an exception: each end has a different
 * next step. A slice says itself in what ways its work is done; the other ends are the same everywhere:
 * `failed` certainly had no effect, `unknown` may have had it, `released` was never started and costs nothing.
 */
export type Outcome<Done extends Readonly<{ end: string }>> =
  | Done
  | Readonly<{ end: 'failed'; error: string }>
  | Readonly<{ end: 'unknown'; error: string }>
  | Readonly<{ end: 'released'; reason: string }>;
