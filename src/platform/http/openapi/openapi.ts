import swagger from '@fastify/swagger';
import { ErrorBodySchema } from '../errors/error-schema.ts';
import type { HttpApp } from '../http-app.ts';

export type OpenApiDocument = Readonly<Record<string, unknown>>;

type Body = Readonly<{ schema: Readonly<{ required?: readonly string[] }> }>;
type Operation = Readonly<{
  requestBody?: Readonly<{ required: boolean; content: Readonly<Record<string, Body>> }>;
}>;

const methodOrder = ['get', 'head', 'post', 'put', 'patch', 'delete'];

/** Collects the schemas of all routes added after this call. */
export function describeRoutes(app: HttpApp, version: string): void {
  app.addSchema(ErrorBodySchema);
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Redrive',
        description: 'Recovers failed messages, outbound requests, jobs and sagas.',
        version,
      },
    },
    convertConstToEnum: false,
    refResolver: {
      buildLocalReference: (schema, _base, _fragment, index) =>
        typeof schema.$id === 'string' ? schema.$id : `schema-${index}`,
    },
  });
}

/** The document with sorted paths and methods, so that moving code does not change it. */
export function openApiDocument(app: HttpApp): OpenApiDocument {
  const document = app.swagger({ yaml: false });
  const paths = Object.entries(document.paths ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...document,
    paths: Object.fromEntries(paths.map(([path, item]) => [path, tidyPathItem(item ?? {})])),
  };
}

function tidyPathItem(item: object): object {
  const operations = Object.entries(item as Readonly<Record<string, Operation>>);
  return Object.fromEntries(
    operations
      .sort(([a], [b]) => methodOrder.indexOf(a) - methodOrder.indexOf(b))
      .map(([method, operation]) => [method, tidyBody(operation)]),
  );
}

/** A body without required fields is optional. */
function tidyBody(operation: Operation): Operation {
  const { requestBody } = operation;
  if (requestBody === undefined) return operation;
  const bodies = Object.values(requestBody.content);
  const required = bodies.some(({ schema }) => (schema.required ?? []).length > 0);
  return { ...operation, requestBody: { ...requestBody, required } };
}
