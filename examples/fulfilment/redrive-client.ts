import type { Order } from './orders.ts';

/** What the shop needs of Redrive's API. */
export type RedriveClient = Readonly<{
  /** Both: `later` where nobody knows whether it was taken, so it has to be said again. */
  register(workflowYaml: string): Promise<'taken' | 'later'>;
  /** With the order's id as its key it is one saga, however often it is started. */
  start(order: Order): Promise<'taken' | 'later'>;
  look(): Promise<SagaView>;
}>;

export type SagaView = Readonly<{
  needingPerson: number;
  /** One of them; null where none does. */
  stuckSagaId: string | null;
}>;

const timeoutMs = 10_000;

/** Calls end with the signal, or when Redrive has not answered for a long time. */
export function createRedriveClient(url: string, workflow: string, stopping: AbortSignal): RedriveClient {
  const signal = (): AbortSignal => AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
  const post = async (path: string, body: object, key?: string): Promise<'taken' | 'later'> => {
    const headers = {
      'content-type': 'application/json',
      'x-actor': 'demo-shop',
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: signal(),
    }).catch(() => null);
    if (answer === null || answer.status >= 500) return 'later';
    if (!answer.ok) throw new Error(`POST ${path}: HTTP ${answer.status}: ${await answer.text()}`);
    return 'taken';
  };
  return {
    register: (yaml) => post('/api/v1/workflows', { workflow_yaml: yaml }),
    start: (order) =>
      post(
        '/api/v1/sagas',
        {
          workflow_name: workflow,
          payload: order,
          correlation_id: order.order_id,
          initiated_by: 'demo-shop',
        },
        order.order_id,
      ),
    async look() {
      const query = `workflow_name=${workflow}&needs_attention=true&page_size=1`;
      const answer = await fetch(`${url}/api/v1/sagas?${query}`, { signal: signal() });
      if (!answer.ok) throw new Error(`the sagas cannot be listed: HTTP ${answer.status}`);
      const { sagas, pagination } = (await answer.json()) as Sagas;
      return { needingPerson: pagination.total_count, stuckSagaId: sagas[0]?.saga_id ?? null };
    },
  };
}

type Sagas = Readonly<{
  sagas: readonly Readonly<{ saga_id: string }>[];
  pagination: Readonly<{ total_count: number }>;
}>;
