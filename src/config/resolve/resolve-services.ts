import type { Check } from '../check.ts';
import { childPath } from '../key-path.ts';
import type { SecretSource } from '../layers/secret-value.ts';
import type { TlsFiles } from '../layers/tls-files.ts';
import type { Settings } from '../schema.ts';
import type { ServiceValues } from '../sections/services.ts';
import { warnUnusedTls } from './warn-unused-tls.ts';

/** The participants of sagas. */
export type ServiceConfig = Readonly<{
  name: string;
  maxInFlight: number;
  isIdempotent: boolean;
  headers: Readonly<Record<string, SecretSource>>;
  tls: TlsFiles | undefined;
}> &
  (
    | Readonly<{ type: 'http'; baseUrl: string }>
    | Readonly<{ type: 'grpc'; host: string; port: number; proto: string | null }>
  );

export function resolveServices(
  services: Settings['services'],
  { maxConcurrent }: Settings['saga'],
  check: Check,
): readonly ServiceConfig[] {
  const half = Math.max(1, Math.floor(maxConcurrent / 2));
  return Object.entries(services).map(([name, values]) => resolve(name, values, half, check));
}

function resolve(name: string, values: ServiceValues, half: number, check: Check): ServiceConfig {
  const { headers, tls, idempotent: isIdempotent } = values;
  const common = { name, maxInFlight: values.maxInFlight ?? half, isIdempotent, headers, tls };
  if (values.type === 'grpc') {
    const { type, host, port, proto = null } = values;
    return { ...common, type, host, port, proto };
  }
  const { type, baseUrl } = values;
  warnUnusedTls(childPath('services', name), { urls: [baseUrl], tls, urlKey: 'base_url' }, check);
  return { ...common, type, baseUrl };
}
