import type { Config } from '../../../config/config.ts';
import { isLoopback } from '../../../config/formats/host-format.ts';
import { ok, problem, type Finding } from '../finding.ts';

/** Passwords and payloads cross the network in clear text without TLS. */
export function examineEncryption({ app, database, kafka }: Config): Finding {
  const isProduction = /^prod/i.test(app.environment);
  const plain = [
    ...(database.mode === 'server' && database.sslMode === 'disable' && isRemote(database.host)
      ? ['set database.ssl_mode to verify-full']
      : []),
    ...(kafka.enabled &&
    !kafka.local &&
    !kafka.securityProtocol.endsWith('SSL') &&
    kafka.brokers.some(isRemoteBroker)
      ? ['set kafka.security_protocol to SSL or SASL_SSL']
      : []),
  ];
  if (!isProduction) return ok('encryption', `not required in ${app.environment}`);
  if (plain.length === 0) return ok('encryption', 'TLS to every server that is not local');
  return problem('encryption', `connections without TLS in ${app.environment}`, plain.join('; '));
}

/** A socket folder is local. */
function isRemote(host: string): boolean {
  return !host.startsWith('/') && !isLoopback(host);
}

function isRemoteBroker(broker: string): boolean {
  return isRemote(broker.replace(/:\d+$/, ''));
}
