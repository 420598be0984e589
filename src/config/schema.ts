/**
 * All keys: what each is called, what it may be, its default and what it means. Types, validation, defaults, environment
 * variables, docs/reference/configuration.md, config/config.yaml and config/config.schema.json all follow from it.
 */
import type { StaticDecode } from 'typebox';

import { host, publicUrl, webUrl } from './formats/host-format.ts';
import { proxyRange } from './formats/proxy-range.ts';
import { topicName } from './formats/topic-format.ts';
import {
  duration,
  filePath,
  flag,
  listOf,
  MIB,
  oneOf,
  oneOrMore,
  optional,
  plainName,
  section,
  text,
  wholeNumber,
} from './formats/value.ts';
import type { InCode } from './in-code.ts';
import { keysIn, mayBeInFile } from './schema-keys.ts';
import { audit } from './sections/audit.ts';
import { auth } from './sections/auth.ts';
import { database } from './sections/database.ts';
import { dlq } from './sections/dlq.ts';
import { jobs } from './sections/jobs.ts';
import { kafka } from './sections/kafka.ts';
import { notifiers } from './sections/notify.ts';
import { outbox } from './sections/outbox.ts';
import { protect } from './sections/protect.ts';
import { services } from './sections/services.ts';

const app = section({
  name: plainName({
    default: 'redrive',
    description: 'name in the logs, and `application_name` in PostgreSQL',
  }),
  version: optional(plainName({ otherwise: 'version of the package', description: 'version in the logs' })),
  tier: optional(plainName({ description: 'a label of your own; accepted, not used' })),
  environment: text({
    // Part of a file name, because it selects the second file.
    what: 'letters, digits, hyphens or underscores',
    pattern: '^[\\w-]{1,63}$',
    default: 'dev',
    description: 'environment in the logs; selects the second file, `config.<environment>.yaml`',
  }),
});

const server = section({
  host: host({
    default: '127.0.0.1',
    description:
      'address to listen on. An address that others can reach requires authentication (`auth.oidc`, `auth.jwt`) or `auth.mode: none`',
  }),
  port: wholeNumber(0, 65_535, {
    default: 8080,
    variable: 'PORT',
    description: 'port to listen on; 0 selects any free port',
  }),
  metrics_port: optional(
    wholeNumber(0, 65_535, {
      examples: [9464],
      description:
        'port of its own for `/metrics`, without authentication: whoever reaches it reads the metrics, and nothing else. 0 selects any free port. Without it, `/metrics` is at `server.port`, and with authentication needs a token of a role with `system:metrics:view`',
    }),
  ),
  metrics_host: optional(host({ description: 'address of `server.metrics_port`; default: `server.host`' })),
  allow_unauthenticated: flag({
    default: false,
    description:
      'the older way to write `auth.mode: none`: confirms that others may reach the server without authentication',
  }),
  allowed_hosts: listOf(host(), {
    default: [],
    description:
      'names accepted in the `Host` header, in addition to `localhost`, loopback addresses, `server.host` and the host of `server.public_url`. Other names get 421, which protects against DNS rebinding. With `auth.mode: none` and an empty list, every name is accepted. With authentication only requests with the cookie of a session are checked',
  }),
  trusted_proxies: listOf(proxyRange(), {
    default: [],
    examples: [['10.0.0.0/8']],
    description:
      'addresses and ranges of the proxies in front of the server. Only their `X-Forwarded-For` and `X-Forwarded-Proto` count, in limits, logs and the audit log; without the list, the address of the connection does',
  }),
  body_limit_bytes: wholeNumber(1024, 256 * MIB, {
    default: MIB,
    description:
      'larger requests get 413. Numbers count as PostgreSQL writes them: `1e308` takes 309 bytes. JSON of more than 8 MiB is always refused',
  }),
  shutdown_timeout: duration('5s', '1h', {
    default: '15s',
    description:
      'longest time from SIGTERM to the end of the process. What still runs 4 s before it keeps its lease, and another process takes it over when the lease expires',
  }),
  public_url: optional(
    publicUrl({
      examples: ['https://redrive.example.com'],
      description:
        'URL under which people reach the server. Links in notifications start with it; without it they are paths. Logins in the console (`auth.oidc`) lead back to it',
    }),
  ),
});

const roles = oneOrMore(oneOf(['api', 'ingest', 'workers']), {
  default: ['api', 'ingest', 'workers'],
  description:
    'what this process does: see [roles and replicas](../operations.md#roles-and-replicas). Replicas may share the work or split it',
});

const saga = section({
  workflow_dir: filePath({
    default: 'workflows',
    description:
      'folder with workflows in YAML, relative to the working directory; a missing folder counts as empty',
  }),
  max_concurrent: wholeNumber(1, 100_000, { default: 100, description: 'parallel calls per process' }),
  lease_secs: wholeNumber(3, 3600, {
    default: 15,
    description: 'lease of a saga in seconds: after a crash, its sagas continue elsewhere after this time',
  }),
  events_topic: topicName({
    default: 'redrive.saga.state_changed.v1',
    description:
      'topic for every change of a saga, with key `saga_id` and value `{saga_id, event_type, correlation_id, workflow_name, payload, timestamp}`; only with Kafka',
  }),
  retention: duration('1h', '36500d', { default: '30d', description: 'when ended sagas are archived' }),
  archive_retention: duration('1h', '36500d', {
    default: '400d',
    description: 'when archived sagas are deleted',
  }),
  auto_resume: flag({
    default: true,
    description:
      "when a service is back, retry sagas that need attention because it was down; at most three times, and never after an operator's action",
  }),
});

const telemetry = section({
  otlp_endpoint: optional(
    webUrl({
      variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      examples: ['http://127.0.0.1:4318'],
      description:
        'base URL of an OTLP/HTTP collector (`http://127.0.0.1:4318`). Spans are sent to `/v1/traces` below it. `OTEL_EXPORTER_OTLP_HEADERS` sets headers, such as a token',
    }),
  ),
  log_level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
    default: 'info',
    variable: 'LOG_LEVEL',
    description: 'lowest level that is logged',
  }),
});

const inFiles = keysIn(section({ auth, database, kafka })).filter(mayBeInFile);

const secrets = section({
  files: section(
    Object.fromEntries(
      inFiles.map(({ path }) => [path, optional(filePath({ description: `file that holds \`${path}\`` }))]),
    ),
    {
      description: `files that hold secrets, by the path of the key: ${inFiles.map(({ path }) => `\`${path}\``).join(', ')}. The configuration is invalid if one is missing`,
    },
  ),
});

export const schema = section({
  app,
  server,
  auth,
  audit,
  database,
  kafka,
  secrets,
  roles,
  dlq,
  protect,
  outbox,
  jobs,
  notify: notifiers({
    description: 'who is notified when something needs attention: see [Notifications](#notifications)',
  }),
  saga,
  services: services({
    description: 'the services that workflows call, by names of your own: see [Services](#services)',
  }),
  telemetry,
});

export type Settings = InCode<StaticDecode<typeof schema>>;
