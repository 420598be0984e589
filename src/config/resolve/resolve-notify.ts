import { createHash } from 'node:crypto';

import type { Check } from '../check.ts';
import type { NotifierValues } from '../sections/notify.ts';
import { resolvePort, warnClearPassword } from './resolve-mail-server.ts';

type Named<V> = V extends { type: 'email' }
  ? Omit<V, 'name' | 'port'> & Readonly<{ name: string; port: number }>
  : Omit<V, 'name'> & Readonly<{ name: string }>;

/**
 * Who is told, by which way. The name stays the same wherever the notifier stands in the list: what waits for it is
 * stored under it.
 */
export type NotifierConfig = Named<NotifierValues>;

export function resolveNotify(
  values: readonly NotifierValues[],
  { leaseMs }: Readonly<{ leaseMs: number }>,
  check: Check,
): readonly NotifierConfig[] {
  const names = values.map(nameOf);
  return values.map((each, index) => {
    const path = `notify[${index}]`;
    const name = nameOf(each);
    const first = names.indexOf(name);
    if (first < index)
      check.report(
        [`${path}.name`],
        `${name} is also the name of notify[${first}]: give each a name of its own`,
      );
    // A lease that ends while a call may still be under way would let two processes send one message.
    if (each.timeoutMs >= leaseMs)
      check.report(
        [`${path}.timeout_ms`, 'outbox.stuck_threshold_min'],
        'must be less than outbox.stuck_threshold_min',
      );
    if (each.type !== 'email') return { ...each, name };
    warnClearPassword(path, each, check);
    return { ...each, name, port: resolvePort(each) };
  });
}

function nameOf(values: NotifierValues): string {
  if (values.name !== undefined) return values.name;
  const digest = createHash('sha256').update(addressOf(values)).digest('hex');
  return `${values.type}_${digest.slice(0, 8)}`;
}

/** Who is told, as it is written. By which mail server, and what stands in a file of secrets, may change. */
function addressOf(values: NotifierValues): string {
  switch (values.type) {
    case 'webhook':
      return values.url;
    case 'slack':
      return values.url.file ?? values.url();
    case 'email':
      return values.to.toSorted().join();
  }
}
