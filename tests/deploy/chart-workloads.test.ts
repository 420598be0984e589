import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/config.ts';
import {
  at,
  envOf,
  only,
  podOf,
  podsOf,
  productionValues,
  render,
  seedValues,
  type Manifest,
} from '../support/chart.ts';
import { createTestDatabase } from '../support/database.ts';
import { needsGoTools } from '../support/go-tool.ts';
import { startServerProcess } from '../support/redrive-process.ts';

const seedConfig = await readFile(
  fileURLToPath(new URL('../../src/config/fixtures/dlq-manager-server.yaml', import.meta.url)),
  'utf8',
);
const rulesFile = fileURLToPath(new URL('../../deploy/prometheus/rules.yaml', import.meta.url));
const grafana = fileURLToPath(new URL('../../deploy/grafana/', import.meta.url));
const prefix = 'vault.hashicorp.com/';

describe('the deployment', needsGoTools, () => {
  let manifests: readonly Manifest[];
  before(async () => void (manifests = await render([seedValues])));
  const container = () => podOf(manifests, 'Deployment dlq-redrive').spec.containers[0];

  test('is restarted by /healthz only: a database outage must not restart every pod', () => {
    for (const probe of ['startupProbe', 'livenessProbe'])
      assert.equal(at(container(), `${probe}.httpGet.path`), '/healthz');
    assert.equal(at(container(), 'readinessProbe.httpGet.path'), '/readyz');
    assert.equal(at(container(), 'readinessProbe.periodSeconds'), 5);
  });

  test('has time to leave the endpoints and to drain before it is killed', () => {
    const { spec } = podOf(manifests, 'Deployment dlq-redrive');
    const sleepS = Number(at(container(), 'lifecycle.preStop.sleep.seconds'));
    const drainS = Number.parseInt(envOf(container() ?? assert.fail())['SERVER_SHUTDOWN_TIMEOUT'] ?? '', 10);
    assert.deepEqual([sleepS, drainS, spec.terminationGracePeriodSeconds], [5, 45, 60]);
  });

  test('is replaced one by one, without a pod less', () => {
    assert.deepEqual(at(only(manifests, 'Deployment'), 'spec.strategy.rollingUpdate'), {
      maxSurge: 1,
      maxUnavailable: 0,
    });
    const budget = only(manifests, 'PodDisruptionBudget');
    assert.equal(at(budget, 'spec.maxUnavailable'), 1);
    assert.equal(at(budget, 'spec.unhealthyPodEvictionPolicy'), 'AlwaysAllow');
  });

  test('migrates in an init container by default, and the server never does', () => {
    const { spec } = podOf(manifests, 'Deployment dlq-redrive');
    assert.deepEqual(spec.initContainers?.[0]?.args, ['migrate', 'up', '--config', '/etc/app/config.yaml']);
    assert.equal(envOf(spec.containers[0] ?? assert.fail())['DATABASE_MIGRATE'], 'false');
  });

  test('starts anew when its configuration changes', async () => {
    const checksum = async (config: object) =>
      podOf(await render([], { config }), 'Deployment dlq-redrive').annotations['checksum/config'];
    assert.notEqual(await checksum({ dlq: { max_retries: 3 } }), await checksum({ dlq: { max_retries: 4 } }));
  });

  test('with split roles there is one deployment per entry, and only those with the API are served', async () => {
    const split = await render([productionValues]);
    const deployments = split.filter(({ kind }) => kind === 'Deployment');
    const rolesOf = (name: string) =>
      envOf(podOf(split, `Deployment ${name}`).spec.containers[0] ?? assert.fail())['ROLES'];
    assert.deepEqual(
      deployments.map(({ metadata }) => [metadata.name, rolesOf(metadata.name)]),
      [
        ['redrive-api', 'api'],
        ['redrive-ingest', 'ingest'],
        ['redrive-workers', 'workers'],
      ],
    );
    const selector = at(only(split, 'Service', 'redrive'), 'spec.selector') as Record<string, string>;
    const served = deployments.filter(({ metadata }) => {
      const { labels } = podOf(split, `Deployment ${metadata.name}`);
      return Object.entries(selector).every(([name, value]) => labels[name] === value);
    });
    assert.deepEqual(
      served.map(({ metadata }) => metadata.name),
      ['redrive-api'],
    );
    assert.equal(split.filter(({ kind }) => kind === 'ScaledObject').length, 3);
    assert.equal(split.filter(({ kind }) => kind === 'HorizontalPodAutoscaler').length, 0);
  });

  test('a role set can be stopped, or scaled down to nothing', async () => {
    const roleSets = ['api', 'ingest', 'workers'].map((name) => ({ name, roles: [name] }));
    const stopped = roleSets.map((set) => (set.name === 'ingest' ? { ...set, replicaCount: 0 } : set));
    const fixed = await render([], { split: true, roleSets: stopped });
    const replicas = (name: string) => at(only(fixed, 'Deployment', `dlq-redrive-${name}`), 'spec.replicas');
    assert.deepEqual(['api', 'ingest', 'workers'].map(replicas), [2, 0, 2]);
    const scaled = roleSets.map((set) => (set.name === 'ingest' ? { ...set, minReplicas: 0 } : set));
    const keda = { enabled: true, triggers: [{ type: 'cron', metadata: {} }] };
    const manifests = await render([], { split: true, roleSets: scaled, keda });
    assert.equal(at(only(manifests, 'ScaledObject', 'dlq-redrive-ingest'), 'spec.minReplicaCount'), 0);
    assert.equal(at(only(manifests, 'ScaledObject', 'dlq-redrive-api'), 'spec.minReplicaCount'), 2);
  });
});

describe('jobs', needsGoTools, () => {
  test('archive as the original design says, instead of the servers', async () => {
    const manifests = await render([seedValues]);
    const cron = only(manifests, 'CronJob');
    assert.equal(at(cron, 'spec.schedule'), '0 2 * * *');
    assert.equal(at(cron, 'spec.timeZone'), 'Etc/UTC');
    assert.equal(at(cron, 'spec.concurrencyPolicy'), 'Forbid');
    assert.equal(at(cron, 'spec.jobTemplate.spec.activeDeadlineSeconds'), 3600);
    const archive = podOf(manifests, 'CronJob dlq-redrive-archive').spec.containers[0];
    assert.deepEqual(archive?.args, ['dlq', 'archive', '--config', '/etc/app/config.yaml']);
    const server = (rendered: readonly Manifest[]) =>
      envOf(podOf(rendered, 'Deployment dlq-redrive').spec.containers[0] ?? assert.fail());
    assert.equal(server(manifests)['DLQ_ARCHIVE_ENABLED'], 'false');
    const without = await render([seedValues], { archive: { cronJob: false } });
    assert.equal(without.filter(({ kind }) => kind === 'CronJob').length, 0);
    assert.equal(server(without)['DLQ_ARCHIVE_ENABLED'], undefined);
  });

  test('end although Vault injects an agent, and the deployment waits for its secrets', async () => {
    const manifests = await render([seedValues], { migrations: { mode: 'job' } });
    for (const name of ['CronJob dlq-redrive-archive', 'Job dlq-redrive-migrate']) {
      const { annotations } = podOf(manifests, name);
      assert.equal(annotations[`${prefix}agent-pre-populate-only`], 'true', name);
      assert.equal(annotations[`${prefix}agent-init-first`], undefined, name);
    }
    const { annotations } = podOf(manifests, 'Deployment dlq-redrive');
    assert.equal(annotations[`${prefix}agent-pre-populate-only`], undefined);
    assert.equal(annotations[`${prefix}agent-init-first`], 'true');
  });

  test('the migration runs before the release, with the login of the owner and objects of its own', async () => {
    const manifests = await render([productionValues]);
    const job = only(manifests, 'Job');
    assert.equal(job.metadata.annotations?.['helm.sh/hook'], 'pre-install,pre-upgrade');
    const pod = podOf(manifests, 'Job redrive-migrate');
    assert.equal(pod.annotations[`${prefix}role`], 'redrive-migrator');
    assert.equal(pod.annotations[`${prefix}agent-inject-secret-db-creds`], 'database/creds/redrive-migrator');
    for (const kind of ['ServiceAccount', 'ConfigMap']) {
      const { annotations } = only(manifests, kind, 'redrive-migrate').metadata;
      assert.equal(annotations?.['helm.sh/hook'], 'pre-install,pre-upgrade');
      assert.ok(
        Number(annotations?.['helm.sh/hook-weight']) <
          Number(job.metadata.annotations?.['helm.sh/hook-weight']),
      );
    }
    assert.equal(pod.spec.serviceAccountName, 'redrive-migrate');
    assert.equal(podOf(manifests, 'Deployment redrive-api').spec.initContainers, undefined);
  });
});

test('the network policy denies everything that is not listed', needsGoTools, async () => {
  const policy = only(await render([productionValues]), 'NetworkPolicy');
  assert.deepEqual(at(policy, 'spec.policyTypes'), ['Ingress', 'Egress']);
  const ports = (at(policy, 'spec.egress') as readonly { ports: readonly { port: number }[] }[]).flatMap(
    (rule) => rule.ports.map(({ port }) => port),
  );
  assert.deepEqual(ports, [53, 53, 5432, 9092, 8200, 4318, 8080, 443]);
});

describe('the network policy', needsGoTools, () => {
  test('selects the pods of this chart, and none of another chart in the same release', async () => {
    const manifests = await render([productionValues]);
    const names = at(only(manifests, 'NetworkPolicy'), 'spec.podSelector.matchExpressions.0');
    assert.deepEqual(names, {
      key: 'app.kubernetes.io/name',
      operator: 'In',
      values: ['redrive', 'redrive-archive', 'redrive-migrate', 'redrive-test'],
    });
    const labels = podsOf(manifests).map((pod) => pod.labels['app.kubernetes.io/name']);
    assert.deepEqual(new Set(labels), new Set(at(names, 'values') as readonly string[]));
  });

  test('lets the connection test in, whoever else may come', async () => {
    for (const files of [[productionValues], []]) {
      const manifests = await render(files, { networkPolicy: { enabled: true } });
      const peers = at(only(manifests, 'NetworkPolicy'), 'spec.ingress.0.from') as readonly object[];
      const testPod = podsOf(manifests).find(({ of }) => of.startsWith('Pod '));
      const isLetIn = peers.some((peer) => {
        const labels = Object.entries((at(peer, 'podSelector.matchLabels') ?? {}) as Record<string, string>);
        return 'podSelector' in peer && labels.every(([name, value]) => testPod?.labels[name] === value);
      });
      assert.ok(isLetIn, JSON.stringify(peers));
    }
  });
});

describe('monitoring', needsGoTools, () => {
  test('gives the series the job that the rules select, whatever the release is called', async () => {
    const monitor = only(await render([productionValues], { fullnameOverride: 'other' }), 'ServiceMonitor');
    assert.deepEqual(at(monitor, 'spec.endpoints.0.relabelings'), [
      { action: 'replace', targetLabel: 'job', replacement: 'redrive' },
    ]);
  });

  test('scrapes the port of the metrics if they have one, which the network policy opens, else that of the API', async () => {
    const portsOf = async (values: object) => {
      const manifests = await render([productionValues], { fullnameOverride: 'other', ...values });
      const [container] = podOf(manifests, 'Deployment other-api').spec.containers;
      const policy = at(only(manifests, 'NetworkPolicy'), 'spec.ingress.0.ports') as readonly {
        port: number;
      }[];
      return {
        env: container && envOf(container)['SERVER_METRICS_PORT'],
        container: container?.ports?.map(({ name, containerPort }) => `${name} ${containerPort}`),
        service: at(only(manifests, 'Service', 'other-metrics'), 'spec.ports.0'),
        scraped: at(only(manifests, 'ServiceMonitor'), 'spec.endpoints.0.port'),
        policy: policy.map(({ port }) => port),
      };
    };
    assert.deepEqual(await portsOf({}), {
      env: '9464',
      container: ['http 8080', 'metrics 9464'],
      service: { name: 'metrics', port: 9464, targetPort: 'metrics', protocol: 'TCP' },
      scraped: 'metrics',
      policy: [8080, 9464],
    });
    assert.deepEqual(await portsOf({ container: { metricsPort: null } }), {
      env: undefined,
      container: ['http 8080'],
      service: { name: 'metrics', port: 8080, targetPort: 'http', protocol: 'TCP' },
      scraped: 'metrics',
      policy: [8080],
    });
  });

  test('has the rules and dashboards of deploy/', async () => {
    const manifests = await render([productionValues]);
    const groups = at(only(manifests, 'PrometheusRule'), 'spec.groups');
    assert.deepEqual(groups, at(parse(await readFile(rulesFile, 'utf8')), 'groups'));
    const dashboards = manifests.filter(({ metadata }) => metadata.name.includes('-dashboard-'));
    assert.equal(dashboards.length, (await readdir(grafana)).filter((name) => name.endsWith('.json')).length);
  });
});

describe('what the chart gives the server', needsGoTools, () => {
  let folder: string;
  before(async () => void (folder = await mkdtemp(join(tmpdir(), 'redrive-chart-'))));
  after(() => rm(folder, { recursive: true, force: true }));

  const rendered = async (files: readonly string[], values: object, deployment: string) => {
    const manifests = await render(files, values);
    const name = deployment.replace(/-api$/, '');
    await writeFile(
      join(folder, 'config.yaml'),
      only(manifests, 'ConfigMap', name).data?.['config.yaml'] ?? '',
    );
    const pod = podOf(manifests, `Deployment ${deployment}`);
    return envOf(pod.spec.containers[0] ?? assert.fail());
  };

  test('is what the original design configures', async () => {
    const config = parse(seedConfig) as object;
    const env = await rendered([seedValues], { config }, 'dlq-redrive');
    await writeFile(join(folder, 'db-password'), 'from vault');
    const loaded = loadConfig({
      argv: { configPath: join(folder, 'config.yaml') },
      env: { ...env, SERVER_ALLOW_UNAUTHENTICATED: 'true' },
      secretsDir: folder,
    });
    assert.equal(loaded.server.port, 8080);
    assert.deepEqual(loaded.kafka.brokers, ['kafka-0.messaging.svc.cluster.local:9092']);
    assert.equal(loaded.dlq.archive.enabled, false);
    assert.ok(loaded.database.mode === 'server');
    assert.equal(loaded.database.name, 'k1s0_dlq');
    assert.equal(loaded.database.password.reveal(), 'from vault');
    assert.equal(loaded.database.migrate, false);
  });

  test('starts a server', async () => {
    const database = await createTestDatabase();
    const config = { ...(parse(seedConfig) as object), database: {} };
    const env = await rendered([seedValues], { config }, 'dlq-redrive');
    const server = await startServerProcess(
      { ...env, DATABASE_URL: database.url, SERVER_ALLOW_UNAUTHENTICATED: 'true', SERVER_PORT: '0' },
      { args: ['serve', '--config', join(folder, 'config.yaml')] },
    );
    try {
      const { port } = new URL(server.url);
      assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
    } finally {
      assert.equal((await server.stop()).code, 0);
      await database.drop();
    }
  });

  test('is accepted for a production, too', async () => {
    const env = await rendered([productionValues], {}, 'redrive-api');
    await writeFile(join(folder, 'kafka-sasl-username'), 'redrive');
    await writeFile(join(folder, 'kafka-sasl-password'), 'secret');
    await writeFile(join(folder, 'db-creds'), '{"username":"v-token-dlq-manager-rw-1","password":"secret"}');
    await writeFile(join(folder, 'session-keys'), 'k'.repeat(32));
    await writeFile(join(folder, 'oidc-client-secret'), 'secret');
    await rm(join(folder, 'db-password'), { force: true });
    const ca = join(folder, 'ca.crt');
    await writeFile(ca, '');
    const loaded = loadConfig({
      argv: { configPath: join(folder, 'config.yaml') },
      env: { ...env, DATABASE_SSL_ROOT_CERT: ca },
      secretsDir: folder,
    });
    assert.ok(loaded.database.mode === 'server');
    assert.equal(loaded.database.user, 'v-token-dlq-manager-rw-1');
    assert.deepEqual(loaded.roles, ['api']);
    assert.ok(loaded.auth.oidc !== null, 'people log in to the console');
    assert.ok(!loaded.server.allowUnauthenticated);
  });
});
