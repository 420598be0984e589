/**
 * What the library uses of pg. It is written out here, so that a service can compile against the library without
 * @types/pg; a `Pool` of pg is assignable to `PostgresPool`, and what that pool connects to is what handlers get.
 */
export type PostgresPool = {
  readonly totalCount: number;
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: ErrorListener): unknown;
  off(event: 'error', listener: ErrorListener): unknown;
};

export type PostgresClient = {
  query(statement: string | PostgresStatement, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: ErrorListener): unknown;
  off(event: 'error', listener: ErrorListener): unknown;
  release(error?: Error): void;
};

export type PostgresStatement = {
  text: string;
  values?: unknown[];
  name?: string;
  types?: { getTypeParser(oid: number): (text: string) => unknown };
};

export type PostgresResult = Readonly<{ command: string; rows: readonly unknown[] }>;

type ErrorListener = (error: Error) => void;

/**
 * The client that a pool connects to: `PoolClient` for a pool of pg. TypeScript infers from the last overload only, and
 * in pg that is the one with a callback, so both are matched; a pool with a single `connect` leaves that unknown.
 */
export type ClientOf<Pool extends PostgresPool> = Pool extends {
  connect: { (): Promise<infer Client>; (callback: never): void };
}
  ? unknown extends Client
    ? Awaited<ReturnType<Pool['connect']>>
    : Client
  : PostgresClient;
