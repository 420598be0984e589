import type { ProtectConfig } from '../config/resolve/resolve-protect.ts';
import { keyFile } from '../platform/protect/key-file.ts';
import type { MasterKey } from '../platform/protect/master-key.ts';
import { vaultTransit } from '../platform/protect/vault-transit.ts';

/** Null if none is configured. */
export function createMasterKey({ encrypt: { masterKey } }: ProtectConfig): MasterKey | null {
  if (masterKey === null) return null;
  return masterKey.in === 'file' ? keyFile(masterKey.file) : vaultTransit(masterKey);
}
