import { databaseHost } from '../formats/host-format.ts';
import {
  duration,
  filePath,
  flag,
  oneOf,
  optional,
  secret,
  section,
  text,
  wholeNumber,
} from '../formats/value.ts';

export const database = section(
  {
    url: optional(
      secret({
        examples: ['postgres://user:password@db.example.com:5432/redrive?sslmode=verify-full'],
        description:
          'the whole connection, `postgres://user:password@host:port/name?sslmode=…`, with special characters percent-encoded. The keys below replace its parts if they come from the same or a later source',
      }),
    ),
    host: optional(
      databaseHost({
        description:
          'name, address or socket folder. Without it and `url`, an embedded PostgreSQL is started',
      }),
    ),
    port: wholeNumber(1, 65_535, { default: 5432, description: 'port of the server' }),
    name: text({
      what: '1 to 63 characters',
      pattern: '^.{1,63}$',
      default: 'redrive',
      description: 'name of the database',
    }),
    user: text({
      what: '1 to 255 characters',
      pattern: '^.{1,255}$',
      default: 'app',
      secretFile: 'db-username',
      description:
        'user; also read with the password from `database.json` or `db-creds`: `{"username": "…", "password": "…"}`',
    }),
    password: secret({
      default: '',
      secretFile: 'db-password',
      description:
        'password. A secret file overrides the configuration file, with a warning, and [may change](../operations.md#changing-credentials) while the process runs',
    }),
    ssl_mode: oneOf(['disable', 'require', 'verify-ca', 'verify-full'], {
      default: 'disable',
      description:
        'as in libpq: `disable`, `require` (encrypted; the certificate is verified only if `ssl_root_cert` is set), `verify-ca`, `verify-full` (the name of the host too)',
    }),
    ssl_root_cert: optional(
      filePath({ description: 'PEM file; default: the certificate authorities that Node.js trusts' }),
    ),
    max_open_conns: wholeNumber(1, 10_000, {
      default: 25,
      description: 'pool size per process; the sum over all replicas must fit into `max_connections`',
    }),
    max_idle_conns: wholeNumber(0, 10_000, {
      default: 5,
      description: 'idle connections to keep; others are closed after 30 s',
    }),
    conn_max_lifetime: duration('1s', '7d', {
      default: '5m',
      description: 'age at which a connection is replaced',
    }),
    connect_timeout: duration('100ms', '5m', {
      default: '5s',
      description: 'how long to wait for a new or a free connection',
    }),
    statement_timeout: duration('100ms', '1h', {
      default: '30s',
      description:
        'a slower statement is cancelled and answered with 503. Migrations and archive procedures are exempt. Through a pooler it applies inside transactions only; set the rest with `ALTER ROLE … SET statement_timeout`',
    }),
    direct_url: optional(
      secret({
        description:
          'connection that bypasses a pooler in transaction mode; used for LISTEN, migrations and archive procedures. What it leaves out is as above',
      }),
    ),
    migrate: flag({
      default: true,
      description: '`false`: only verify the migrations, and refuse to start if one is missing',
    }),
    wake: oneOf(['listen', 'poll'], {
      default: 'listen',
      description: '`poll`: no LISTEN connection, for a pooler without `direct_url`',
    }),
    data_dir: filePath({
      default: '.redrive/postgres',
      description: 'data folder of the embedded PostgreSQL',
    }),
  },
  { description: 'Without a `host` or a `url`, an embedded PostgreSQL keeps its data in `data_dir`.' },
);
