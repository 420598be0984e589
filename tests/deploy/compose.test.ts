import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/config.ts';
import { needsGoTools, runGoTool } from '../support/go-tool.ts';

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url));

type Service = Readonly<{
  image?: string;
  profiles?: readonly string[];
  environment?: Readonly<Record<string, string>>;
  ports?: readonly Readonly<{ host_ip?: string }>[];
  volumes?: readonly Readonly<{ type: string; source: string; read_only?: boolean }>[];
  read_only?: boolean;
  cap_drop?: readonly string[];
  security_opt?: readonly string[];
  healthcheck?: object;
  depends_on?: Readonly<Record<string, Readonly<{ condition: string }>>>;
  stop_grace_period?: string;
}>;

/** Written by others of this repository: they exist before Compose is started. */
const folders = new Set(['prometheus', 'grafana'].map((name) => `${deploy}${name}`));

describe('compose.yaml', needsGoTools, () => {
  let services: Readonly<Record<string, Service>>;
  before(async () => {
    const { code, out, err } = await runGoTool('compose-check', [`${deploy}compose.yaml`]);
    assert.equal(code, 0, err);
    ({ services } = JSON.parse(out) as { services: typeof services });
  });

  test('has the servers that Redrive needs, and the others by profile', () => {
    const byProfile = Object.entries(services).map(([name, { profiles = [] }]) =>
      [name, ...profiles].join(' '),
    );
    assert.deepEqual(byProfile.toSorted(), [
      'grafana observe',
      'kafka',
      'keycloak auth',
      'otel-collector observe',
      'pgbouncer pooler',
      'postgres',
      'prometheus observe',
      'redrive',
    ]);
  });

  test('runs Redrive without privileges, and only after its servers are healthy', () => {
    const { redrive } = services;
    assert.equal(redrive?.read_only, true);
    assert.deepEqual(redrive?.cap_drop, ['ALL']);
    assert.deepEqual(redrive?.security_opt, ['no-new-privileges:true']);
    for (const name of ['postgres', 'kafka']) {
      assert.equal(redrive?.depends_on?.[name]?.condition, 'service_healthy');
      assert.ok(services[name]?.healthcheck, name);
    }
  });

  test('publishes every port on loopback only, and names every image by an exact tag', () => {
    for (const [name, { ports = [], image = '' }] of Object.entries(services)) {
      for (const port of ports) assert.equal(port.host_ip, '127.0.0.1', name);
      assert.match(image, /:(?!latest)[\w.-]*\d[\w.-]*$/, name);
    }
  });

  test('mounts only what exists, and read-only', () => {
    for (const [name, { volumes = [] }] of Object.entries(services))
      for (const { type, source, read_only: isReadOnly } of volumes) {
        if (type !== 'bind') continue;
        assert.ok(folders.has(source) || existsSync(source), `${name}: there is no ${source}`);
        assert.equal(isReadOnly, true, `${name}: ${source}`);
      }
  });

  test('shares the database k1s0_system with the schema auth of another service', async () => {
    assert.equal(services['postgres']?.environment?.['POSTGRES_DB'], 'k1s0_system');
    assert.match(await readFile(`${deploy}compose/postgres/01-auth.sql`, 'utf8'), /^CREATE SCHEMA auth;$/m);
  });

  test('gives Redrive a configuration that it accepts', () => {
    const { database, kafka } = loadConfig({
      argv: { configPath: `${deploy}config/config.yaml` },
      env: services['redrive']?.environment ?? {},
      secretsDir: '/nonexistent',
    });
    assert.ok(database.mode === 'server');
    assert.deepEqual([database.host, database.name, database.user], ['postgres', 'k1s0_system', 'app']);
    assert.deepEqual(kafka.brokers, ['kafka:19092']);
  });

  test('has a realm with the three roles, and one user of each', async () => {
    const realm = JSON.parse(await readFile(`${deploy}compose/keycloak/realm.json`, 'utf8')) as {
      roles: { realm: readonly { name: string }[] };
      users: readonly { realmRoles: readonly string[] }[];
    };
    const roles = ['sys_auditor', 'sys_operator', 'sys_admin'];
    assert.deepEqual(
      realm.roles.realm.map(({ name }) => name),
      roles,
    );
    assert.deepEqual(
      realm.users.flatMap(({ realmRoles }) => realmRoles),
      roles,
    );
  });

  test('scrapes the metrics at a port of their own, which is not published', async () => {
    const { scrape_configs: jobs } = parse(await readFile(`${deploy}compose/prometheus.yaml`, 'utf8')) as {
      scrape_configs: readonly {
        job_name: string;
        static_configs: readonly { targets: readonly string[] }[];
      }[];
    };
    // The rules select this job.
    assert.equal(jobs[0]?.job_name, 'redrive');
    const { environment = {}, ports = [] } = services['redrive'] ?? {};
    const port = environment['SERVER_METRICS_PORT'];
    assert.deepEqual(jobs[0]?.static_configs[0]?.targets, [`redrive:${port}`]);
    assert.ok(!JSON.stringify(ports).includes(String(port)));
  });
});

test('a Compose file with an unknown key is refused', needsGoTools, async () => {
  const { code, err } = await runGoTool('compose-check', [
    fileURLToPath(new URL('fixtures/wrong-compose.yaml', import.meta.url)),
  ]);
  assert.notEqual(code, 0);
  assert.match(err, /helthcheck/);
});
