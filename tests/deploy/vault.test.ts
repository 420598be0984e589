import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/config.ts';
import { podOf, podsOf, productionValues, render, seedValues } from '../support/chart.ts';
import { needsGoTools, runGoTool } from '../support/go-tool.ts';
import { startVaultStub, type VaultStub } from '../support/vault-stub.ts';

/** The templates that the chart gives to the Vault agent, rendered by consul-template, which the agent uses as well. */
const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url));
const prefix = 'vault.hashicorp.com/';
const password = `it's "100%" {{ safe }} \\ å`;

const secrets = {
  'secret/data/k1s0/system/dlq-manager/database': { password },
  'secret/data/k1s0/system/dlq-manager/console': { session_keys: 'k'.repeat(32), client_secret: 'client' },
  'secret/data/k1s0/system/kafka/sasl': { username: 'redrive', password: 'sasl' },
  'database/creds/dlq-manager-rw': { username: 'v-rw-1', password },
};

describe('a template of the Vault agent', needsGoTools, () => {
  let vault: VaultStub;
  let folder: string;
  before(async () => {
    vault = await startVaultStub(secrets);
    folder = await mkdtemp(join(tmpdir(), 'redrive-vault-'));
  });
  after(async () => {
    await vault.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** As the injector configures the agent by the annotations of a pod. */
  const runAgent = async (annotations: Readonly<Record<string, string>>) => {
    const names = Object.keys(annotations)
      .filter((name) => name.startsWith(`${prefix}agent-inject-secret-`))
      .map((name) => name.slice(`${prefix}agent-inject-secret-`.length));
    const template = (name: string) => {
      const of = (annotation: string) => annotations[`${prefix}${annotation}-${name}`] ?? '';
      return [
        'template {',
        `  contents = ${JSON.stringify(of('agent-inject-template')).replaceAll('${', '$${')}`,
        `  destination = ${JSON.stringify(join(folder, of('agent-inject-file')))}`,
        `  perms = ${of('agent-inject-perms')}`,
        `  error_on_missing_key = ${of('error-on-missing-key')}`,
        '}',
      ];
    };
    const config = join(folder, 'agent.hcl');
    const connection = [
      'vault {',
      `  address = "${vault.url}"`,
      `  token = "${vault.token}"`,
      '  renew_token = false',
    ];
    const noRetry = '  retry { enabled = false }';
    await writeFile(config, [...connection, noRetry, '}', ...names.flatMap(template)].join('\n'));
    return { ...(await runGoTool('consul-template', ['-config', config, '-once'])), names };
  };

  const deploymentOf = async (values: readonly string[], name: string, more?: object) =>
    podOf(await render(values, more), `Deployment ${name}`).annotations;

  test('of the original design writes exactly the password, readable by the server only', async () => {
    const { code, err } = await runAgent(await deploymentOf([seedValues], 'dlq-redrive'));
    assert.equal(code, 0, err);
    const file = join(folder, 'db-password');
    assert.equal(await readFile(file, 'utf8'), password);
    assert.equal((await stat(file)).mode & 0o777, 0o400);
    await rm(file);
  });

  test('of a login that changes writes user and password together, as the server reads them', async () => {
    const { code, err, names } = await runAgent(await deploymentOf([productionValues], 'redrive-workers'));
    assert.equal(code, 0, err);
    assert.deepEqual(names.toSorted(), [
      'db-creds',
      'kafka-sasl-password',
      'kafka-sasl-username',
      'oidc-client-secret',
      'session-keys',
    ]);
    const { database, kafka, auth } = loadConfig({
      env: {
        DATABASE_HOST: 'postgres',
        KAFKA_BROKERS: 'a:9092',
        KAFKA_SECURITY_PROTOCOL: 'SASL_SSL',
        SERVER_PUBLIC_URL: 'https://redrive.example.com',
        AUTH_OIDC_ISSUER: 'https://idp.example.com',
        AUTH_OIDC_CLIENT_ID: 'redrive',
      },
      secretsDir: folder,
    });
    assert.ok(database.mode === 'server');
    assert.deepEqual([database.user, database.password.reveal()], ['v-rw-1', password]);
    assert.equal(kafka.sasl?.user, 'redrive');
    assert.equal(auth.oidc?.clientId, 'redrive');
  });

  test('of a key that does not exist fails and writes nothing', async () => {
    const secret = {
      path: 'secret/data/k1s0/system/dlq-manager/database',
      key: 'pasword',
      mountPath: '/vault/secrets/typo',
    };
    const annotations = await deploymentOf([seedValues], 'dlq-redrive', { vault: { secrets: [secret] } });
    const { code, err } = await runAgent(annotations);
    assert.notEqual(code, 0);
    assert.match(err, /pasword/);
    await assert.rejects(stat(join(folder, 'typo')), { code: 'ENOENT' });
  });
});

describe('the policies', needsGoTools, () => {
  test('allow exactly the paths that the original designs and the chart read', async () => {
    const paths = async (file: string) =>
      [...(await readFile(`${deploy}vault/${file}`, 'utf8')).matchAll(/^path "([^"]+)"/gm)].map(
        ([, path = '']) => path,
      );
    const server = await paths('policy.hcl');
    assert.deepEqual(server.toSorted(), [
      'database/creds/dlq-manager-ro',
      'database/creds/dlq-manager-rw',
      'database/creds/system-saga-ro',
      'database/creds/system-saga-rw',
      'secret/data/k1s0/system/dlq-manager/console',
      'secret/data/k1s0/system/dlq-manager/database',
      'secret/data/k1s0/system/kafka/sasl',
      'secret/data/k1s0/system/saga/database',
    ]);
    const migrator = await paths('migrator-policy.hcl');
    for (const values of [seedValues, productionValues])
      for (const { annotations } of podsOf(await render([values]))) {
        const allowed = annotations[`${prefix}role`] === 'redrive-migrator' ? migrator : server;
        for (const [name, path] of Object.entries(annotations))
          if (name.startsWith(`${prefix}agent-inject-secret-`)) assert.ok(allowed.includes(path), path);
      }
  });

  test('give reading only', async () => {
    for (const file of ['policy.hcl', 'migrator-policy.hcl']) {
      const text = await readFile(`${deploy}vault/${file}`, 'utf8');
      for (const [, capabilities] of text.matchAll(/capabilities = (.*)/g))
        assert.equal(capabilities, '["read"]', basename(file));
    }
  });
});
