import swagger from '@fastify/swagger';
import { ErrorBodySchema } from '../errors/error-schema.ts';
import type { HttpApp } from '../http-app.ts';
import { completeOperation, type Operation } from './complete-operation.ts';
import { sharedComponents, type NamedErrorStatus } from './document-parts.ts';
import { applyChecked, nameSchemas } from './name-schemas.ts';

export type OpenApiDocument = Readonly<Record<string, unknown>>;

/** A group of operations: a slice. */
export type ApiTag = Readonly<{ name: string; description: string }>;

declare module 'fastify' {
  interface FastifySchema {
    /** Errors that requests of this route can get, besides those that every route has. */
    errors?: readonly NamedErrorStatus[];
    /** The route records who acts: the header `x-actor`. */
    takesActor?: boolean;
    /** Its answer has the header `etag`. */
    hasEtag?: boolean;
  }
}

/** What the document has besides what its type says. */
type Described = Readonly<{ components: Readonly<{ schemas: object }> }>;

const methodOrder = ['get', 'head', 'post', 'put', 'patch', 'delete'];

/** Collects the schemas of all routes added after this call. */
export function describeRoutes(app: HttpApp, version: string, tags: readonly ApiTag[]): void {
  app.addSchema(ErrorBodySchema);
  app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Redrive',
        description: 'Recovers failed messages, outbound requests, jobs and sagas.',
        version,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'The server that sent this document.' }],
      tags: [
        ...tags,
        { name: 'process', description: 'Health, metrics and the API description of one process.' },
      ],
    },
    convertConstToEnum: false,
    refResolver: {
      buildLocalReference: (schema, _base, _fragment, index) =>
        typeof schema.$id === 'string' ? schema.$id : `schema-${index}`,
    },
    transform: ({ schema, url }) => {
      const { errors = [], takesActor = false, hasEtag = false, ...described } = schema ?? {};
      const kept = { 'x-errors': errors, 'x-takes-actor': takesActor, 'x-has-etag': hasEtag };
      return { schema: { ...described, ...kept }, url };
    },
  });
}

/** The document with sorted paths and methods, so that moving code does not change it. */
export function openApiDocument(app: HttpApp): OpenApiDocument {
  const document = app.swagger({ yaml: false });
  const { schemas: shared } = (document as Described).components;
  const checked = applyChecked(document.paths) as Readonly<Record<string, object>>;
  const sorted = Object.entries(checked).sort(([a], [b]) => (a < b ? -1 : 1));
  const { paths, schemas } = nameSchemas(
    Object.fromEntries(sorted.map(([path, item]) => [path, completePathItem(item)])),
  );
  return {
    ...document,
    components: { schemas: { ...shared, ...schemas }, ...sharedComponents },
    paths,
  };
}

function completePathItem(item: object): object {
  const operations = Object.entries(item as Readonly<Record<string, Operation>>);
  return Object.fromEntries(
    operations
      .sort(([a], [b]) => methodOrder.indexOf(a) - methodOrder.indexOf(b))
      .map(([method, operation]) => [method, completeOperation(operation)]),
  );
}
