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
    /** The slice that owns the route: the prefix of its errors. Absent on routes of the process itself. */
    slice?: string;
    /** Its body is refused where reading it would lose something: a repeated name, a number no double holds. */
    exactJson?: boolean;
  }
}

/** Gives handlers the types of their typebox schemas, on the way in and on the way out. */
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
