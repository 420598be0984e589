/** What a service imports: `import { outbox } from 'redrive'`. Nothing of the server is loaded with it. */
export { outbox } from './outbox.ts';
export type { AddedOrder, NewOrder, Transaction } from './outbox.ts';
