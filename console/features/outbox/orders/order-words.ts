import type { Order } from '../../../lib/server-shapes.ts';

/** The destination's answer, as far as it is kept. */
export type KeptAnswer = Readonly<{
  status: number | null;
  digest: string | null;
  broker_order_id: string | null;
}>;

/** The server stores it in this form; one of another version is not shown. */
export function answerOf({ response }: Pick<Order, 'response'>): KeptAnswer | null {
  if (typeof response !== 'object' || response === null) return null;
  const { status, digest, broker_order_id: outsideId } = response as Readonly<Record<string, unknown>>;
  return {
    status: typeof status === 'number' ? status : null,
    digest: typeof digest === 'string' ? digest : null,
    broker_order_id: typeof outsideId === 'string' ? outsideId : null,
  };
}

/** Who looks at a dead order has to know whether its effect may have happened; of a sent one it is certain. */
export function isInDoubt({ in_doubt: inDoubt, status, resolution }: Order): boolean {
  return inDoubt && status !== 'sent' && resolution === null;
}
