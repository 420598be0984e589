import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, type ConnectionOptions } from 'node:tls';
import { isIP } from 'node:net';
import type { Config } from '../../../config/config.ts';
import { dayMs } from '../../../kernel/duration.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { tryConnection } from '../../../platform/http-client/try-connection.ts';
import { ok, problem, skipped, warning, type Finding } from '../finding.ts';

type Target = Readonly<{ name: string; url: URL; tls: Pick<ConnectionOptions, 'ca' | 'cert' | 'key'> }>;

/** A target that takes longer to accept a connection is a finding. */
const withinMs = 5000;
/** Certificates that renew themselves do so 30 days before: this one should have. */
const warnDays = 21;

/** DNS, connection and certificate of everything that orders, jobs and sagas call. Sends no request. */
export async function examineTargets(config: Config): Promise<Finding> {
  const targets = targetsOf(config);
  if (targets.length === 0) return skipped('destinations', 'none configured');
  const found = await Promise.all(
    targets.map(async (target) => ({ target, trouble: await troubleOf(target) })),
  );
  const bad = found.flatMap(({ target, trouble }) =>
    trouble === null ? [] : [{ ...trouble, text: `${target.name}: ${trouble.text}` }],
  );
  if (bad.length === 0) return ok('destinations', `${targets.length} reachable`);
  const text = bad.map((one) => one.text).join('; ');
  return bad.some(({ isExpiring }) => !isExpiring)
    ? problem('destinations', text, 'correct the address, or start the receiver; its items wait meanwhile')
    : warning('destinations', text, 'renew the certificates');
}

function targetsOf({ outbox, jobs, services }: Config): readonly Target[] {
  return [
    ...outbox.destinations.flatMap((one) =>
      one.type === 'http'
        ? [{ name: `destination ${one.name}`, url: new URL(one.url), tls: one.tls ?? {} }]
        : [],
    ),
    ...jobs.queues.flatMap(({ name, target }) =>
      target === null ? [] : [{ name: `queue ${name}`, url: new URL(target.url), tls: target.tls ?? {} }],
    ),
    ...services.map((one) => ({
      name: `service ${one.name}`,
      url: new URL(
        one.type === 'http'
          ? one.baseUrl
          : `${one.tls === undefined ? 'http' : 'https'}://${one.host}:${one.port}`,
      ),
      tls: one.tls ?? {},
    })),
  ];
}

type Trouble = Readonly<{ text: string; isExpiring: boolean }>;

async function troubleOf({ url, tls }: Target): Promise<Trouble | null> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  try {
    if (isIP(host) === 0) await lookup(host);
    if (url.protocol !== 'https:') {
      await tryConnection(url, withinMs);
      return null;
    }
    return expiryOf(await certificateEnd(host, url.port === '' ? 443 : Number(url.port), tls));
  } catch (error) {
    return { text: `${url.host}: ${messageOf(error)}`, isExpiring: false };
  }
}

async function certificateEnd(host: string, port: number, tls: Target['tls']): Promise<Date> {
  const socket = connect({ ...tls, host, port, ...(isIP(host) === 0 ? { servername: host } : {}) });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(withinMs) });
    return new Date(socket.getPeerCertificate().valid_to);
  } finally {
    socket.destroy();
  }
}

export function expiryOf(end: Date, now: Date = new Date()): Trouble | null {
  const days = Math.floor((end.getTime() - now.getTime()) / dayMs);
  return days < warnDays
    ? {
        text: `the certificate expires in ${days} days (${end.toISOString().slice(0, 10)})`,
        isExpiring: true,
      }
    : null;
}
