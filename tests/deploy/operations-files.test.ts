import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadConfig } from '../../src/config/config.ts';
import { at, manifestsOf, only } from '../support/chart.ts';
import { validateManifest } from '../support/kubernetes-models.ts';

const run = promisify(execFile);
const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url));

describe('the configuration of an environment is that of the original design', () => {
  const table = [
    ['dev', 'localhost', 'disable', 10, 3],
    ['staging', 'postgres.k1s0-system.svc.cluster.local', 'require', 25, 5],
    ['prod', 'postgres.k1s0-system.svc.cluster.local', 'verify-full', 50, 10],
  ] as const;
  for (const [environment, ...expected] of table)
    test(environment, () => {
      const { app, database } = loadConfig({
        argv: { configPath: `${deploy}config/config.yaml` },
        env: { APP_ENVIRONMENT: environment, SERVER_ALLOW_UNAUTHENTICATED: 'true' },
        secretsDir: '/nonexistent',
      });
      assert.ok(database.mode === 'server');
      const { host, sslMode, maxOpenConns, maxIdleConns } = database;
      assert.deepEqual([host, sslMode, maxOpenConns, maxIdleConns], expected);
      assert.deepEqual([app.tier, app.environment, database.name], ['system', environment, 'k1s0_system']);
    });
});

describe('backups are those of the original design', () => {
  test('with CloudNativePG: every day at 00:00 to Ceph, kept 30 days, WAL archived continuously', async () => {
    const manifests = manifestsOf(await readFile(`${deploy}postgres/cnpg-cluster.yaml`, 'utf8'));
    for (const manifest of manifests) assert.doesNotThrow(() => validateManifest(manifest));
    const cluster = only(manifests, 'Cluster', 'postgres');
    assert.equal(at(cluster, 'spec.backup.retentionPolicy'), '30d');
    assert.match(String(at(cluster, 'spec.backup.barmanObjectStore.endpointURL')), /^https:\/\/ceph/);
    assert.ok(at(cluster, 'spec.backup.barmanObjectStore.wal'));
    assert.equal(at(cluster, 'spec.bootstrap.initdb.database'), 'k1s0_system');
    const backup = only(manifests, 'ScheduledBackup');
    // With seconds.
    assert.equal(at(backup, 'spec.schedule'), '0 0 0 * * *');
    assert.equal(at(backup, 'spec.cluster.name'), 'postgres');
    const restored = only(manifests, 'Cluster', 'postgres-restore-test');
    assert.equal(
      at(restored, 'spec.bootstrap.recovery.source'),
      at(restored, 'spec.externalClusters.0.name'),
    );
  });

  test('with pgBackRest: full backups kept 30 days, WAL of the last seven', async () => {
    const text = await readFile(`${deploy}postgres/pgbackrest.conf`, 'utf8');
    const settings = Object.fromEntries(
      [...text.matchAll(/^([\w-]+)=(.*)$/gm)].map(([, key, value]) => [key, value]),
    );
    assert.equal(settings['repo1-retention-full-type'], 'time');
    assert.equal(settings['repo1-retention-full'], '30');
    assert.equal(settings['repo1-retention-archive-type'], 'full');
    assert.equal(settings['repo1-retention-archive'], '7');
    assert.equal(settings['repo1-type'], 's3');
  });
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
if (!hasSystemd && process.env['CI'] === 'true') throw new Error('systemd-analyze is not installed');

test(
  'the systemd unit is valid and hardened',
  hasSystemd ? {} : { skip: 'systemd-analyze is not installed' },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-unit-'));
    try {
      const unit = join(folder, 'redrive.service');
      const text = await readFile(`${deploy}systemd/redrive.service`, 'utf8');
      // Node.js may be elsewhere on this machine.
      await writeFile(unit, text.replace('/usr/bin/node', process.execPath));
      const verified = await run('systemd-analyze', ['verify', unit]);
      assert.equal(verified.stderr, '');
      const { stdout } = await run('systemd-analyze', ['security', '--offline=true', unit]);
      const exposure = Number(/Overall exposure level for redrive\.service: ([\d.]+)/.exec(stdout)?.[1]);
      assert.ok(exposure < 2, `exposure ${exposure}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
