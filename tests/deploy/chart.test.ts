import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { parse } from 'yaml';
import {
  at,
  chart,
  containersOf,
  envOf,
  only,
  podOf,
  podsOf,
  productionValues,
  render,
  runHelm,
  seedValues,
  type Manifest,
} from '../support/chart.ts';
import { needsGoTools } from '../support/go-tool.ts';
import { validateManifest } from '../support/kubernetes-models.ts';
import { violationsOf } from '../support/pod-security.ts';

const { appVersion } = parse(await readFile(`${chart}/Chart.yaml`, 'utf8')) as { appVersion: string };

/** Everything that the chart can render is in one of these. */
const releases: Readonly<Record<string, readonly [files: readonly string[], values?: object]>> = {
  'its defaults': [[]],
  "the original design's values": [[seedValues]],
  'the values of a production': [[productionValues]],
  'KEDA without split roles': [[], { keda: { enabled: true, triggers: [{ type: 'cpu', metadata: {} }] } }],
  'migrations as a job, everything on': [
    [seedValues],
    {
      migrations: { mode: 'job' },
      networkPolicy: { enabled: true },
      monitoring: { serviceMonitor: { enabled: true } },
      ingress: { enabled: true, hosts: ['redrive.example.com'] },
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    },
  ],
};

describe('the chart', needsGoTools, () => {
  for (const [name, [files, values]] of Object.entries(releases))
    describe(`with ${name}`, () => {
      let manifests: readonly Manifest[];
      before(async () => void (manifests = await render(files, values)));

      test('helm lint finds nothing', async () => {
        const { code, out, err } = await runHelm('lint', files, values);
        assert.equal(code, 0, out + err);
      });

      test('every object has the form that Kubernetes and the operators demand', () => {
        assert.ok(manifests.length > 5);
        for (const manifest of manifests)
          assert.doesNotThrow(() => validateManifest(manifest), `${manifest.kind} ${manifest.metadata.name}`);
      });

      test('every pod keeps the restricted Pod Security Standard and mounts no token of the API', () => {
        for (const pod of podsOf(manifests)) assert.deepEqual(violationsOf(pod.spec), [], pod.of);
      });

      test('selectors find pods, ports have names, and scaled deployments exist', () => {
        assert.deepEqual(danglingReferences(manifests), []);
      });

      test('every volume that is mounted exists, and every pod has its configuration', () => {
        for (const pod of podsOf(manifests)) {
          const volumes = new Set((pod.spec.volumes ?? []).map((volume) => volume.name));
          for (const { volumeMounts = [] } of containersOf(pod))
            for (const mount of volumeMounts) assert.ok(volumes.has(mount.name), `${pod.of}: ${mount.name}`);
        }
      });
    });

  test('without Vault no pod has annotations of Vault', async () => {
    for (const pod of podsOf(await render([])))
      assert.deepEqual(
        Object.keys(pod.annotations).filter((name) => name.includes('vault')),
        [],
      );
  });
});

describe('values that contradict each other are refused', needsGoTools, () => {
  const keda = { enabled: true, triggers: [{ type: 'cpu', metadata: {} }] };
  const secret = { path: 'secret/data/a', key: 'password', mountPath: '/vault/secrets/db-password' };
  const roles = (...names: readonly string[]) => names.map((name) => ({ name, roles: [name] }));
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ['Vault without a role', { vault: { role: '' } }, /vault\.role is empty/],
    ['two autoscalers', { keda }, /autoscaling\.enabled and keda\.enabled exclude each other/],
    [
      'KEDA without a trigger',
      { autoscaling: { enabled: false }, keda: { enabled: true } },
      /keda\.triggers is empty/,
    ],
    ['two secrets in one file', { vault: { secrets: [secret, secret] } }, /the file name db-password/],
    ['a secret without a key', { vault: { secrets: [{ ...secret, key: undefined }] } }, /needs a key/],
    [
      'two role sets with one name',
      { split: true, roleSets: [...roles('api', 'ingest', 'workers'), ...roles('api')] },
      /two entries of roleSets have the name api/,
    ],
    [
      'fewer replicas at most than at least',
      { autoscaling: { minReplicas: 6 } },
      /minReplicas \(6\) is larger than maxReplicas \(5\)/,
    ],
    ['an ingress without a host', { ingress: { enabled: true } }, /ingress\.hosts is empty/],
    ['a role that nobody has', { split: true, roleSets: roles('api', 'ingest') }, /the role workers/],
    ['a grace period that ends while it drains', { shutdownTimeoutSeconds: 60 }, /must be at least 75/],
    ['a typo', { replicaCuont: 3 }, /replicaCuont/],
    ['a typo further down', { vault: { secrets: [{ ...secret, mountpath: '/x' }] } }, /mountpath/],
    ['a gRPC port', { service: { grpcPort: 9090 } }, /grpcPort/],
    ['a role that does not exist', { split: true, roleSets: roles('api', 'worker') }, /roles/],
    [
      'a key that would end the template',
      { vault: { secrets: [{ ...secret, key: 'a }}{{ env "HOME"' }] } },
      /key/,
    ],
    [
      'a path that would end the template',
      { vault: { secrets: [{ ...secret, path: 'a" }}{{ env "HOME' }] } },
      /path/,
    ],
  ];
  for (const [name, values, message] of cases)
    test(name, async () => {
      const { code, err } = await runHelm('template', [seedValues], values);
      assert.notEqual(code, 0);
      assert.match(err, message);
    });
});

describe('with the values of the original design', needsGoTools, () => {
  let manifests: readonly Manifest[];
  before(async () => void (manifests = await render([seedValues])));

  test('the image is the one that they name, with the version of the chart', () => {
    for (const pod of podsOf(manifests))
      for (const { image } of containersOf(pod))
        assert.equal(image, `harbor.internal.example.com/k1s0-system/dlq-manager:${appVersion}`);
  });

  test('the service listens on 80 and the container on 8080', () => {
    const service = only(manifests, 'Service', 'dlq-redrive');
    assert.equal(at(service, 'spec.type'), 'ClusterIP');
    assert.deepEqual(at(service, 'spec.ports'), [
      { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' },
    ]);
    const [container] = podOf(manifests, 'Deployment dlq-redrive').spec.containers;
    assert.deepEqual(container?.ports, [{ name: 'http', containerPort: 8080, protocol: 'TCP' }]);
    assert.equal(envOf(container)['SERVER_PORT'], '8080');
  });

  test('2 to 5 replicas follow the CPU at 70 %, and the deployment names no number', () => {
    const scaler = only(manifests, 'HorizontalPodAutoscaler');
    assert.equal(at(scaler, 'spec.minReplicas'), 2);
    assert.equal(at(scaler, 'spec.maxReplicas'), 5);
    assert.equal(at(scaler, 'spec.metrics.0.resource.target.averageUtilization'), 70);
    assert.equal(at(only(manifests, 'Deployment'), 'spec.replicas'), undefined);
    assert.equal(manifests.filter(({ kind }) => kind === 'ScaledObject').length, 0);
  });

  test('the Vault agent writes the password to the file that the server reads', () => {
    const { annotations, spec } = podOf(manifests, 'Deployment dlq-redrive');
    const vault = Object.entries(annotations).filter(([name]) => name.startsWith('vault.'));
    const path = 'secret/data/k1s0/system/dlq-manager/database';
    assert.deepEqual(Object.fromEntries(vault), {
      'vault.hashicorp.com/agent-inject': 'true',
      'vault.hashicorp.com/role': 'system',
      'vault.hashicorp.com/agent-run-as-same-user': 'true',
      'vault.hashicorp.com/agent-service-account-token-volume-name': 'vault-token',
      'vault.hashicorp.com/agent-init-first': 'true',
      'vault.hashicorp.com/agent-inject-secret-db-password': path,
      'vault.hashicorp.com/secret-volume-path-db-password': '/vault/secrets',
      'vault.hashicorp.com/agent-inject-file-db-password': 'db-password',
      'vault.hashicorp.com/agent-inject-perms-db-password': '0400',
      'vault.hashicorp.com/error-on-missing-key-db-password': 'true',
      'vault.hashicorp.com/agent-inject-template-db-password': `{{- with secret "${path}" -}}\n{{ .Data.data.password }}\n{{- end -}}\n`,
    });
    const token = (spec.volumes ?? []).find(({ name }) => name === 'vault-token');
    assert.equal(at(token, 'projected.sources.0.serviceAccountToken.path'), 'token');
  });

  test('an empty list of brokers sets nothing, another one overrides the configuration', async () => {
    const envIn = (rendered: readonly Manifest[]) =>
      containersOf(podOf(rendered, 'Deployment dlq-redrive')).map((container) => envOf(container));
    for (const env of envIn(manifests)) {
      assert.equal(env['KAFKA_BROKERS'], undefined);
      assert.equal(env['KAFKA_ENABLED'], undefined);
    }
    for (const env of envIn(await render([seedValues], { kafka: { brokers: ['a:9092', 'b:9092'] } })))
      assert.equal(env['KAFKA_BROKERS'], 'a:9092,b:9092');
    for (const env of envIn(await render([seedValues], { kafka: { enabled: false } })))
      assert.equal(env['KAFKA_ENABLED'], 'false');
  });
});

/** References between objects that lead nowhere. */
function danglingReferences(manifests: readonly Manifest[]): readonly string[] {
  const pods = podsOf(manifests);
  const named = (manifest: Manifest): string => `${manifest.kind} ${manifest.metadata.name}`;
  const finds = (selector: unknown, wanted = pods) =>
    wanted.filter(({ labels }) =>
      Object.entries(selector as Record<string, string>).every(([name, value]) => labels[name] === value),
    );
  return manifests.flatMap((manifest) => {
    const { kind } = manifest;
    const problems: string[] = [];
    const demand = (isTrue: boolean, problem: string): void => {
      if (!isTrue) problems.push(`${named(manifest)}: ${problem}`);
    };
    if (kind === 'Service') {
      const found = finds(at(manifest, 'spec.selector'));
      demand(found.length > 0, 'finds no pod');
      demand(
        found.every(({ of }) => of.startsWith('Deployment ')),
        `finds ${found.map(({ of }) => of).join(', ')}`,
      );
      const ports = found.flatMap(({ spec }) =>
        spec.containers.flatMap((container) => container.ports ?? []),
      );
      demand(
        ports.some(({ name }) => name === at(manifest, 'spec.ports.0.targetPort')),
        'no such port',
      );
    }
    if (kind === 'Deployment')
      demand(
        finds(at(manifest, 'spec.selector.matchLabels')).length === 1,
        'selects not exactly its own pods',
      );
    if (kind === 'PodDisruptionBudget')
      demand(
        finds(at(manifest, 'spec.selector.matchLabels')).length === 1,
        'selects not exactly one deployment',
      );
    if (kind === 'HorizontalPodAutoscaler' || kind === 'ScaledObject')
      demand(
        manifests.some(
          (other) => named(other) === `Deployment ${String(at(manifest, 'spec.scaleTargetRef.name'))}`,
        ),
        'scales nothing',
      );
    if (kind === 'ServiceMonitor') {
      const selector = Object.entries(at(manifest, 'spec.selector.matchLabels') as Record<string, string>);
      const services = manifests.filter(
        (other) =>
          other.kind === 'Service' &&
          selector.every(([name, value]) => other.metadata.labels?.[name] === value),
      );
      demand(services.length === 1, `finds ${services.length} services`);
    }
    return problems;
  });
}
