/** Wraps data keys. Its own key never gets into the database. Throws a KeyError. */
export type MasterKey = Readonly<{
  /** Where it is, for status and errors. */
  name: string;
  wrap(secret: Buffer): Promise<string>;
  unwrap(wrapped: string): Promise<Buffer>;
  /** The same data key under the newest master key; null if it already is. */
  rewrap(wrapped: string): Promise<string | null>;
}>;
