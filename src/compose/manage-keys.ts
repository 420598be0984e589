/** What commands on data keys need: they run without the rest of the system. */
export { createMasterKey } from './create-master-key.ts';
export { listKeys, rewrapKeys, rotateKey } from '../platform/protect/manage-keys.ts';
