import type { Check } from '../check.ts';
import type { Settings } from '../schema.ts';

export type ProtectConfig = Settings['protect'];

export function resolveProtect(protect: Settings['protect'], check: Check): ProtectConfig {
  const { topics, keyFile } = protect.encrypt;
  if (topics.length > 0 && keyFile === undefined)
    check.report(
      ['protect.encrypt.key_file', 'protect.encrypt.topics'],
      'is required to encrypt the messages of protect.encrypt.topics',
    );
  return protect;
}
