import { redriveAt, takenOrLater } from '../redrive-http.ts';
import type { Order } from './orders.ts';

/** What the shop needs of Redrive's API. */
export type RedriveClient = Readonly<{
  /** Both: `later` where nobody knows whether it was taken, so it has to be sent again. */
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

const actor = 'demo-shop';

export function createRedriveClient(url: string, workflow: string, signal: AbortSignal): RedriveClient {
  const redrive = redriveAt(url, actor);
  return {
    register: (yaml) => takenOrLater(redrive.registerWorkflow({ workflow_yaml: yaml }, { signal }), signal),
    start: (order) =>
      takenOrLater(
        redrive.startSaga(
          { workflow_name: workflow, payload: order, correlation_id: order.order_id, initiated_by: actor },
          { idempotencyKey: order.order_id, signal },
        ),
        signal,
      ),
    async look() {
      const filter = { workflow_name: workflow, needs_attention: true, page_size: 1 };
      const { sagas, pagination } = await redrive.listSagas(filter, { signal });
      return { needingPerson: pagination.total_count, stuckSagaId: sagas[0]?.saga_id ?? null };
    },
  };
}
