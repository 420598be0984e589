import { SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Span, Tracer } from '@opentelemetry/api';
import { AppError, codeOf, messageOf } from '../../kernel/errors.ts';

/** Runs `work` in a span of its own that is active meanwhile; what `work` throws is noted and thrown on. */
export async function withSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.recordException(error instanceof Error ? error : messageOf(error));
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}

export type TracingOptions = Readonly<{
  /** The collector's base address, such as `http://127.0.0.1:4318`; without one nothing is loaded. */
  otlpEndpoint: string | undefined;
  service: string;
  version: string;
  environment: string;
  importModule?: (name: string) => Promise<unknown>;
}>;

export type Tracing = Readonly<{ stop(): Promise<void> }>;

type Sdk = Readonly<{ start(): void; shutdown(): Promise<void> }>;
type SdkModule = Readonly<{ NodeSDK: new (options: Readonly<Record<string, unknown>>) => Sdk }>;
type ExporterModule = Readonly<{ OTLPTraceExporter: new (options: Readonly<{ url: string }>) => unknown }>;

const sdkPackage = '@opentelemetry/sdk-node';
const exporterPackage = '@opentelemetry/exporter-trace-otlp-http';

/**
 * Starts the export of spans where an endpoint is set. The SDK is not among the dependencies: most
 * installations never export, and it is larger than the rest of them together.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { otlpEndpoint, service, version, environment } = options;
  if (otlpEndpoint === undefined) return { stop: async () => {} };
  const load = options.importModule ?? ((name: string) => import(name));
  const { NodeSDK } = (await loadOptional(load, sdkPackage)) as SdkModule;
  const { OTLPTraceExporter } = (await loadOptional(load, exporterPackage)) as ExporterModule;
  const attributes = { 'service.version': version, 'deployment.environment.name': environment };
  const sdk = new NodeSDK({
    serviceName: service,
    traceExporter: new OTLPTraceExporter({ url: `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces` }),
    resourceDetectors: [{ detect: () => ({ attributes }) }],
    instrumentations: [],
  });
  sdk.start();
  return { stop: () => sdk.shutdown() };
}

async function loadOptional(load: (name: string) => Promise<unknown>, name: string): Promise<unknown> {
  try {
    return await load(name);
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new AppError(
      'SYS_TELEMETRY_SDK_MISSING',
      'internal',
      `an OTLP endpoint is set but ${name} is not installed: run "npm install ${sdkPackage} ${exporterPackage}", or unset the endpoint`,
      { cause: error },
    );
  }
}
