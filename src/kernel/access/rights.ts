import type { Principal } from './principal.ts';

/** The rights of subjects that are not connected: their work may still run. */
export type Rights = Readonly<{
  /** Without authentication everybody is one principal: nobody could approve what another one does. */
  areKept: boolean;
  /** Keeps the roles of the caller, so that they are known to later calls of `principalOf`. */
  keep(principal: Principal): Promise<void>;
  /** What the subject may do now; null if it has no rights at all: a revoked key, or a name from before authentication. */
  principalOf(subject: string): Promise<Principal | null>;
  /** The person who answers for the subject: the maker of a key, else the subject itself. */
  personOf(subject: string): Promise<string>;
}>;
