import { dimensions, type Dimension, type Scope } from '../../kernel/access/scope.ts';
import { isLoopback } from '../formats/host-format.ts';
import { nearest } from '../../kernel/nearest.ts';
import { builtInPatterns } from '../../kernel/protect/patterns.ts';
import type { ProtectionSettings } from '../../kernel/protect/protection.ts';
import type { Check } from '../check.ts';
import { anyOf } from '../formats/value.ts';
import { childPath } from '../key-path.ts';
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

export type EncryptConfig = Readonly<{ topics: readonly string[]; masterKey: MasterKeyConfig | null }>;

export type ProtectConfig = ProtectionSettings & Readonly<{ encrypt: EncryptConfig }>;

/** The rules whose parts are not even stored. */
export function removedAtIngest({ rules, ...settings }: ProtectionSettings): ProtectionSettings {
  return { ...settings, rules: rules.filter(({ dropAtIngest }) => dropAtIngest === true) };
}

export function resolveProtect(protect: Settings['protect'], check: Check): ProtectConfig {
  return { ...resolveRules(protect, check), encrypt: resolveEncrypt(protect, check) };
}

function resolveEncrypt({ encrypt }: Settings['protect'], check: Check): EncryptConfig {
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
  return { topics, masterKey };
}

function resolveRules({ rules, patterns, hashKey }: Settings['protect'], check: Check): ProtectionSettings {
  const known = [...Object.keys(builtInPatterns), ...Object.keys(patterns)];
  for (const name of Object.keys(patterns))
    if (Object.hasOwn(builtInPatterns, name))
      check.report([childPath('protect.patterns', name)], 'is a built-in pattern: choose another name');
  rules.forEach((rule, index) => {
    const path = `protect.rules[${index}]`;
    rule.patterns.forEach((name, at) => {
      if (!known.includes(name)) check.report([`${path}.patterns[${at}]`], unknownPattern(name, known));
    });
    if (rule.fields.length + rule.headers.length + rule.patterns.length === 0 && !rule.key)
      check.report([path], 'protects nothing: it needs fields, headers, key or patterns');
    if (rule.action === 'hash' && hashKey === undefined)
      check.report([`${path}.action`, 'protect.hash_key'], 'requires protect.hash_key');
    if (rule.dropAtIngest && !isForDeadLetters(namesOf(rule)))
      check.report(
        [`${path}.drop_at_ingest`],
        'is for dead letters only: give the rule topics, or no names at all',
      );
  });
  if (hashKey !== undefined && hashKey.reveal().length < 16)
    check.report(['protect.hash_key'], 'must have at least 16 characters');
  return {
    rules: rules.map(({ fields, headers, key, patterns: found, action, dropAtIngest, ...scope }) => ({
      names: namesOf(scope),
      fields,
      headers,
      key,
      patterns: found,
      action,
      dropAtIngest,
    })),
    patterns,
    hashKey: hashKey === undefined ? null : () => hashKey.reveal(),
  };
}

function isForDeadLetters(names: Scope): boolean {
  return names.topics !== undefined || Object.keys(names).length === 0;
}

function namesOf(scope: Readonly<Partial<Record<Dimension, readonly string[] | undefined>>>): Scope {
  return Object.fromEntries(
    dimensions.flatMap((dimension) => {
      const names = scope[dimension];
      return names === undefined ? [] : [[dimension, names] as const];
    }),
  );
}

function unknownPattern(name: string, known: readonly string[]): string {
  const meant = anyOf(nearest(name, known));
  return `is neither a built-in pattern nor one of protect.patterns${meant === undefined ? '' : `; did you mean ${meant}?`}`;
}
