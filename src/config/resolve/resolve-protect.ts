import { isLoopback } from '../formats/host-format.ts';
import type { Check } from '../check.ts';
import type { Settings } from '../schema.ts';

/** Where the master key is. */
export type MasterKeyConfig =
  | Readonly<{ in: 'file'; file: string }>
  | Readonly<{
      in: 'vault';
      address: string;
      mount: string;
      key: string;
      tokenFile: string;
      namespace: string | undefined;
    }>;

export type ProtectConfig = Readonly<{
  encrypt: Readonly<{ topics: readonly string[]; masterKey: MasterKeyConfig | null }>;
}>;

export function resolveProtect({ encrypt }: Settings['protect'], check: Check): ProtectConfig {
  const { topics, keyFile, vault } = encrypt;
  const { address, tokenFile } = vault;
  if (keyFile !== undefined && address !== undefined)
    check.report(
      ['protect.encrypt.key_file', 'protect.encrypt.vault.address'],
      'must not be set together with protect.encrypt.vault.address',
    );
  if (address !== undefined && tokenFile === undefined)
    check.report(
      ['protect.encrypt.vault.token_file', 'protect.encrypt.vault.address'],
      'is required with protect.encrypt.vault.address',
    );
  if (address?.startsWith('http:') === true && !isLoopback(new URL(address).hostname))
    check.warn('protect.encrypt.vault.address is http: data keys cross the network in the clear; use https');
  if (topics.length > 0 && keyFile === undefined && address === undefined)
    check.report(
      ['protect.encrypt.key_file', 'protect.encrypt.topics'],
      'or protect.encrypt.vault.address is required to encrypt the messages of protect.encrypt.topics',
    );
  const masterKey: MasterKeyConfig | null =
    keyFile !== undefined
      ? { in: 'file', file: keyFile }
      : address !== undefined && tokenFile !== undefined
        ? { in: 'vault', ...vault, address, tokenFile }
        : null;
  return { encrypt: { topics, masterKey } };
}
