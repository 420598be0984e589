/** The package `redrive` re-exports the client library, so that there is one copy of its code. */
export * from '@redrive/client';
