/**
 * What a saga does, step by step. It is data, the same from YAML and from TypeScript, with every default filled in;
 * its hash names it, and a saga keeps the one that it began with.
 */
export type Workflow = Readonly<{
  name: string;
  /** From the start; null where it may take as long as it takes. */
  deadlineMs: number | null;
  steps: readonly Step[];
}>;

export type Step = Readonly<{
  name: string;
  /** One of the configured services. */
  service: string;
  /** gRPC: `package.Service.Method`; HTTP: `POST /reservations/${input.id}`. */
  method: string;
  undo: Undo;
  /** The point of no return: from its first attempt on, only forward. */
  isPivot: boolean;
  /** Of one call, the undo's too. */
  timeoutMs: number;
  retry: RetryPolicy;
  /** What is sent, its references in their one spelling (template.ts); null sends the saga's payload. */
  input: Mapping | null;
  /** What the undo sends; null sends the saga's payload. */
  undoInput: Mapping | null;
}>;

/**
 * How a step is undone. `absent`: it has nothing to be undone by; when it is done the undo is skipped, and in doubt a
 * person is asked. `none`: there is nothing to undo, said on purpose, so nobody is asked.
 */
export type Undo =
  | Readonly<{ kind: 'call'; method: string }>
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'absent' }>;

export type RetryPolicy = Readonly<{
  maxAttempts: number;
  backoff: 'exponential' | 'fixed';
  initialIntervalMs: number;
}>;

/** JSON in which a string may be, or hold, references: `${input.sku}`, `${steps.reserve.id}`, `${own.id}`. */
export type Mapping =
  | string
  | number
  | boolean
  | null
  | readonly Mapping[]
  | Readonly<{ [key: string]: Mapping }>;

/** What is wrong with a definition; `step` is its name, or `#2` where it has none, and null for the whole. */
export type Flaw = Readonly<{ step: string | null; field: string; message: string }>;
