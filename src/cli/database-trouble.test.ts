import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../config/layers/secret.ts';
import { databaseTrouble, describeServer } from './database-trouble.ts';

const server = {
  mode: 'server',
  host: 'db.example.com',
  port: 5432,
  name: 'redrive',
  user: 'app',
  userFile: undefined,
  password: new Secret('hunter2'),
  passwordFile: undefined,
  sslMode: 'disable',
  sslRootCert: undefined,
  maxOpenConns: 25,
  maxIdleConns: 5,
  connMaxLifetimeMs: 300_000,
  statementTimeoutMs: 30_000,
  connectTimeoutMs: 5000,
  migrate: true,
  wake: 'listen',
  direct: undefined,
} as const;

const coded = (code: string, message = ''): Error => Object.assign(new Error(message), { code });

const troubles: readonly (readonly [error: Error, found: RegExp, advice: RegExp])[] = [
  [coded('ECONNREFUSED'), /nothing listens at db\.example\.com:5432/, /start PostgreSQL/],
  [coded('ENOTFOUND'), /unknown host db\.example\.com/, /database\.host/],
  [coded('ETIMEDOUT'), /no answer/, /firewalls/],
  [new Error('timeout expired'), /no answer/, /firewalls/],
  [coded('28P01'), /unknown user app, or wrong password/, /database\.password/],
  [coded('28000', 'no pg_hba.conf entry for host "10.0.0.1", no encryption'), /was rejected/, /ssl_mode/],
  [coded('28000', 'role "app" does not exist'), /was rejected/, /CREATE ROLE/],
  [coded('3D000'), /database redrive does not exist/, /CREATE DATABASE "redrive" OWNER "app"/],
  [coded('53300', 'too many clients already'), /too many clients/, /max_connections/],
  [coded('57P03', 'the database system is starting up'), /starting up/, /wait/],
  [new Error('The server does not support SSL connections'), /does not support TLS/, /ssl_mode to disable/],
  [coded('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed'), /not trusted: self-signed/, /database\.ssl_root_cert/],
  [coded('ERR_TLS_CERT_ALTNAME_INVALID', 'altname'), /another name/, /verify-ca/],
  [coded('08P01', 'unsupported startup parameter: statement_timeout'), /pooler/, /ignore_startup_parameters/],
  [new Error('SASL: client password must be a string'), /needs a password/, /set database\.password/],
];

for (const [error, found, advice] of troubles)
  test(`${(error as { code?: string }).code ?? error.message} is explained, with advice`, () => {
    const trouble = databaseTrouble(error, server);
    assert.match(trouble?.found ?? '', found);
    assert.match(trouble?.advice ?? '', advice);
  });

test('other errors are not explained', () => {
  assert.equal(databaseTrouble(coded('42703', 'no such column'), server), null);
  assert.equal(databaseTrouble(new Error('boom'), server), null);
});

test('a server is described without its password', () => {
  assert.equal(describeServer(server), 'db.example.com:5432, database redrive, user app');
});
