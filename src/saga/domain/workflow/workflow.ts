/**
 * The definition of a saga: plain data, the same from YAML and TypeScript, with every default filled in. It is
 * identified by its hash, and a running saga keeps the definition that it started with.
 */
export type Workflow = Readonly<{
  name: string;
  /** From the start of the saga; null for no deadline. */
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
  /** How an action is polled after a 202: `GET /orders/${own.id}`. By default the same request is sent again. */
  poll?: string | undefined;
  /** The point of no return: from its first attempt on, the saga only goes forward. */
  isPivot: boolean;
  /** Of one call, action or undo. */
  timeoutMs: number;
  retry: RetryPolicy;
  /** How long its undo, or its action after the pivot, is retried; 24 hours by default. */
  undoForMs?: number | undefined;
  /** How long it waits for a service with an open circuit before the saga is undone; an hour by default. */
  waitForServiceMs?: number | undefined;
  /** The request, its references in canonical spelling (template.ts); null sends the saga's payload. */
  input: Mapping | null;
  /** The request of the undo; null sends the saga's payload. */
  undoInput: Mapping | null;
}>;

/**
 * How a step is undone. `absent`: no undo is defined; a done step is skipped, one in doubt needs attention. `none`: the
 * author declared that there is nothing to undo, so it is skipped in doubt too.
 */
export type Undo =
  | Readonly<{ kind: 'call'; method: string }>
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'absent' }>;

export type RetryPolicy = Readonly<{
  maxAttempts: number;
  backoff: 'exponential' | 'fixed';
  initialIntervalMs: number;
  /** Of exponential backoff. By default an hour for actions, 5 minutes for undos and actions after the pivot. */
  maxIntervalMs?: number | undefined;
}>;

/** JSON whose strings may contain references: `${input.sku}`, `${steps.reserve.id}`, `${own.id}`. */
export type Mapping =
  | string
  | number
  | boolean
  | null
  | readonly Mapping[]
  | Readonly<{ [key: string]: Mapping }>;

/** A flaw in a definition; `step` is the step's name, `#2` if it has none, or null for the whole workflow. */
export type Flaw = Readonly<{ step: string | null; field: string; message: string }>;
