import type {
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Logger } from '../telemetry/logger.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The slice of the route: the prefix of its errors. Undefined for /healthz and the like. */
    slice?: string;
    /** Rejects a body that JSON.parse would change: a duplicate name, a number that no double holds. */
    exactJson?: boolean;
  }
}

/** Handlers get the types of their typebox schemas. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}

/** Fastify as the slices see it. */
export type HttpApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  Logger,
  TypeBoxProvider
>;
