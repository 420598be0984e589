import { saga as describeSaga } from './saga-builder.ts';
import { startSaga } from './saga-start.ts';

/**
 * Defines workflows in TypeScript, `saga<Order>('place-order').step(…)`, and starts sagas in the caller's transaction,
 * `saga.start(tx, 'place-order', order)`.
 */
export const saga = Object.assign(describeSaga, { start: startSaga });
