import type { Config } from '../../../config/config.ts';
import { ok, warning, type Finding } from '../finding.ts';

const secretKeys =
  /(?:^|\.)(?:password|secret|client_secret|session\.keys|token|url|direct_url|authorization)$/i;
/** An address is secret only if it holds a password. */
const addresses = /(?:^|\.)(?:url|direct_url)$/;
const secretAddresses: ReadonlySet<string> = new Set(['database.url', 'database.direct_url']);

/** A configuration file is copied, committed and shown; a secret in it is no longer one. */
export function examinePlainSecrets(config: Config): Finding {
  const written = Object.entries(config.sources)
    .filter(([path, source]) => /\.ya?ml\b/.test(source) && isSecret(path, config))
    .map(([path, source]) => `${path} (${source})`);
  if (written.length === 0) return ok('secrets', 'none in configuration files');
  return warning(
    'secrets',
    `in configuration files: ${written.join(', ')}`,
    'move them to secret files or environment variables',
  );
}

function isSecret(path: string, { database, kafka }: Config): boolean {
  if (!secretKeys.test(path)) return false;
  if (addresses.test(path) && !secretAddresses.has(path)) return false;
  // Left empty for the agent to fill in.
  if (path === 'database.password' || secretAddresses.has(path))
    return database.mode === 'server' && database.password.reveal() !== '';
  if (path === 'kafka.sasl.password') return kafka.enabled;
  return true;
}
