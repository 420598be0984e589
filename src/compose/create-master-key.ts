import type { ProtectConfig } from '../config/resolve/resolve-protect.ts';
import { keyFile } from '../platform/protect/key-file.ts';
import type { MasterKey } from '../platform/protect/master-key.ts';

/** Null if none is configured. */
export function createMasterKey({ encrypt }: ProtectConfig): MasterKey | null {
  return encrypt.keyFile === undefined ? null : keyFile(encrypt.keyFile);
}
