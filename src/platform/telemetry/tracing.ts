import { context, trace } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { sleep } from '../../kernel/clock.ts';

export type TracingOptions = Readonly<{
  /** The collector's base URL, such as `http://127.0.0.1:4318`; without it the SDK is not loaded. */
  otlpEndpoint: string | undefined;
  service: string;
  version: string;
  environment: string;
  /** Called when exports start to fail, and again only after one has succeeded. */
  onExportError: (error: unknown) => void;
}>;

export type Tracing = Readonly<{ stop(): Promise<void> }>;

/** A collector that is away must not hold spans in memory for long. */
const exportTimeoutMs = 5000;
/** Of the time that a process has to stop: spans are worth no more. */
const stopWithinMs = 1000;

/**
 * Exports spans if an endpoint is configured. An unavailable collector only loses spans: at most 2048 are queued, and the
 * stop waits at most one second.
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const { otlpEndpoint, service, version, environment } = options;
  if (otlpEndpoint === undefined) return { stop: async () => {} };
  const [{ BatchSpanProcessor, TracerProvider }, { OTLPTraceExporter }, { resourceFromAttributes }, hooks] =
    await Promise.all([
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/context-async-hooks'),
    ]);
  const exporter = new OTLPTraceExporter({
    url: `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: exportTimeoutMs,
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      'service.version': version,
      'deployment.environment.name': environment,
    }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reportingFailures(exporter, options.onExportError),
        exportTimeoutMillis: exportTimeoutMs + 1000,
      }),
    ],
  });
  context.setGlobalContextManager(new hooks.AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(provider);
  return {
    async stop() {
      const flushed = new AbortController();
      const flushing = provider.shutdown().catch(() => {});
      await Promise.race([flushing, sleep(stopWithinMs, flushed.signal)]);
      flushed.abort();
      trace.disable();
      context.disable();
    },
  };
}

/** The SDK drops unsent spans silently. */
function reportingFailures(exporter: SpanExporter, onExportError: (error: unknown) => void): SpanExporter {
  let isFailing = false;
  return {
    export(spans, onResult) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined && !isFailing) onExportError(result.error);
        isFailing = result.error !== undefined;
        onResult(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
