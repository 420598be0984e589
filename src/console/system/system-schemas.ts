import { Type, type TSchema } from 'typebox';
import { AsOf, nullable, Timestamp } from '../../platform/http/schema-parts.ts';

/** Response schemas only document; the routes define the fields. */

const HealthSchema = Type.Enum(['healthy', 'degraded', 'unhealthy']);

export const StatusSchema: TSchema = Type.Object(
  {
    replica: Type.String({ description: 'The process that answers.', examples: ['host-1/12/5f0c'] }),
    version: Type.String({ examples: ['0.1.0'] }),
    environment: Type.String({ examples: ['prod'] }),
    roles: Type.Array(Type.String({ examples: ['api'] })),
    status: HealthSchema,
    checks: Type.Array(
      Type.Object({
        name: Type.String({ examples: ['database'] }),
        status: HealthSchema,
        message: nullable(Type.String({ examples: ['timed out after 1000 ms'] })),
      }),
    ),
    checked_at: Timestamp,
  },
  { title: 'SystemStatus' },
);

export const ReplicasSchema: TSchema = Type.Object(
  {
    replicas: Type.Array(
      Type.Object({
        replica_id: Type.String({ examples: ['host-1/12/5f0c'] }),
        roles: Type.Array(Type.String({ examples: ['workers'] })),
        version: Type.String({ examples: ['0.1.0'] }),
        kafka_cluster_id: nullable(Type.String()),
        started_at: nullable(Timestamp),
        seen_at: nullable(Timestamp),
        alive: Type.Boolean({ description: 'Heard of within the last 15 seconds.' }),
      }),
      { description: 'The newest first.' },
    ),
    leases: Type.Array(
      Type.Object({
        name: Type.String({ examples: ['jobs.gauges'] }),
        owner: nullable(Type.String({ examples: ['host-1/12/5f0c'] })),
        until: nullable(Timestamp),
        held: Type.Boolean({ description: 'If not, nobody does this work now.' }),
      }),
      { description: 'What one process does at a time, by name.' },
    ),
    as_of: AsOf,
  },
  { title: 'SystemReplicas' },
);

export const NotifiersSchema: TSchema = Type.Object(
  {
    notifiers: Type.Array(
      Type.Object({
        name: Type.String({ examples: ['on-call'] }),
        type: Type.Enum(['webhook', 'slack', 'email']),
        slices: Type.Array(Type.String({ examples: ['jobs'] })),
        told_at: nullable(Timestamp),
        held: Type.Integer({ description: 'Events that wait for the end of a cool-down.' }),
        failed: Type.Boolean({ description: 'A notification was not delivered.' }),
      }),
    ),
    oldest_event_at: nullable(
      Type.String({ format: 'date-time', description: 'Of the events that nobody has taken yet.' }),
    ),
    as_of: AsOf,
  },
  { title: 'SystemNotifiers' },
);

export const ConfigSchema: TSchema = Type.Object(
  {
    settings: Type.Array(
      Type.Object({
        path: Type.String({ examples: ['server.port'] }),
        value: nullable(Type.String({ examples: ['8080'], description: 'Null if it is hidden.' })),
        source: nullable(
          Type.String({ examples: ['SERVER_PORT'], description: 'Where it was given; null for defaults.' }),
        ),
      }),
      { description: 'By path.' },
    ),
  },
  { title: 'SystemConfig' },
);
