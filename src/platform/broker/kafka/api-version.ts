import { AppError } from '../../../kernel/errors.ts';
import type { Link } from './connections.ts';

type VersionedApi = Readonly<{ key: number; version: number }>;

/** The newest of the versions that the broker supports. */
export function offered<T extends VersionedApi>(link: Link, newestFirst: readonly [T, ...T[]]): T {
  const range = link.apis.get(newestFirst[0].key);
  const found = newestFirst.find(
    ({ version }) => range && version >= range.minVersion && version <= range.maxVersion,
  );
  if (found) return found;
  const has = range ? `${range.name} v${range.minVersion} to v${range.maxVersion}` : 'no such API';
  throw new AppError(
    'SYS_BROKER_UNSUPPORTED',
    'internal',
    `the broker is too old: it supports ${has}; Redrive needs Kafka 3.1 or later`,
  );
}
