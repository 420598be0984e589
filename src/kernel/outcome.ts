/**
 * How one attempt at an item ended, as every slice says it. A value, not an exception: each case has a
 * different next step. `released` was never started and costs nothing; `unknown` may have had its effect.
 */
export type Outcome<Done> =
  | Readonly<{ outcome: 'done' } & Done>
  | Readonly<{ outcome: 'failed'; error: string; retriable: boolean }>
  | Readonly<{ outcome: 'unknown'; error: string }>
  | Readonly<{ outcome: 'released' }>;
