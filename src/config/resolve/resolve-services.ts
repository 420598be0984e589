import type { Check } from '../check.ts';
import { childPath } from '../key-path.ts';
import { openTls, resolveHeaders, resolveTls } from './resolve-call.ts';
import type { Settings } from '../schema.ts';
import type { ServiceValues } from '../formats/services-formats.ts';
import type { TlsFiles } from '../layers/tls-files.ts';

/** The participants of sagas. */
export type ServiceConfig = Readonly<{
  name: string;
  maxInFlight: number;
  isIdempotent: boolean;
  headers: Readonly<Record<string, () => string>>;
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
  const path = childPath('services', name);
  const common = {
    name,
    maxInFlight: values.maxInFlight ?? half,
    isIdempotent: values.idempotent,
    headers: resolveHeaders(path, values.headers, check),
  };
  if (values.type === 'http') {
    const tls = resolveTls(path, { urls: [values.baseUrl], files: values.tls, urlKey: 'base_url' }, check);
    return { ...common, type: 'http', baseUrl: values.baseUrl, tls };
  }
  const { host, port, proto, tls } = values;
  check.checkFile(`${path}.proto`, proto);
  return {
    ...common,
    type: 'grpc',
    host,
    port,
    proto: proto ?? null,
    tls: tls === undefined ? undefined : openTls(path, tls, check),
  };
}
