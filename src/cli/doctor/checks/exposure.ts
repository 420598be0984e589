import type { Config } from '../../../config/config.ts';
import { isLoopback } from '../../../config/formats/host-format.ts';
import { ok, problem, warning, type Finding } from '../finding.ts';

/**
 * How a server that others can reach is reached. Redrive listens without TLS, so tokens and payloads need a proxy in
 * front, and behind a proxy that is not listed everybody has its address: limits and logs would take all for one.
 */
export function examineExposure({ app, auth, server }: Config): Finding {
  const { host, publicUrl, trustedProxies } = server;
  if (isLoopback(host)) return ok('exposure', `listens on ${host} only`);
  if (auth.mode === 'none')
    return warning('exposure', `${host} is open to everybody`, 'set auth.jwt, or server.host to 127.0.0.1');
  if (publicUrl === undefined || !publicUrl.startsWith('https:')) {
    const found = `no https: address in server.public_url, and ${host} has no TLS: tokens can be read on the way`;
    const advice = 'put a proxy with TLS in front, and set server.public_url';
    return /^prod/i.test(app.environment)
      ? problem('exposure', found, advice)
      : warning('exposure', found, advice);
  }
  if (trustedProxies.length === 0)
    return warning(
      'exposure',
      'the proxy of server.public_url is not listed: all callers have its address in limits and logs',
      'set server.trusted_proxies',
    );
  return ok('exposure', `by TLS at ${publicUrl}, through listed proxies`);
}
