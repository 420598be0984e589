import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { runGoTool, type ToolRun } from './go-tool.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

export const chart = join(root, 'deploy/helm/redrive');
export const seedValues = join(chart, 'ci/seed-001-values.yaml');
export const productionValues = join(chart, 'ci/production-values.yaml');

/** An object of Kubernetes, as far as the tests look into it. */
export type Manifest = Readonly<{
  apiVersion: string;
  kind: string;
  metadata: Readonly<{
    name: string;
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
  }>;
  spec?: unknown;
  data?: Readonly<Record<string, string>>;
}>;

/** Helm as built from source does not know a version of Kubernetes. */
const kubeVersion = ['--kube-version', '1.33.0'];

export async function runHelm(
  command: 'lint' | 'template',
  files: readonly string[],
  values: object = {},
): Promise<ToolRun> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-chart-'));
  try {
    const more = join(folder, 'values.json');
    await writeFile(more, JSON.stringify(values));
    const args = [...files, more].flatMap((file) => ['--values', file]);
    const target = command === 'lint' ? ['lint', '--strict', chart] : ['template', 'dlq', chart];
    return await runGoTool('helm', [...target, ...kubeVersion, '--namespace', 'k1s0-system', ...args]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function render(files: readonly string[], values: object = {}): Promise<readonly Manifest[]> {
  const { code, out, err } = await runHelm('template', files, values);
  assert.equal(code, 0, err);
  return manifestsOf(out);
}

export function manifestsOf(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((document) => {
      assert.deepEqual(document.errors, []);
      return document.toJS() as Manifest | null;
    })
    .filter((manifest) => manifest !== null);
}

export function only(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter(
    (manifest) => manifest.kind === kind && (name === undefined || manifest.metadata.name === name),
  );
  assert.equal(found.length, 1, `${found.length} of ${kind} ${name ?? ''}`);
  return found[0] as Manifest;
}

/** What is at `spec.template.spec` of a manifest, or undefined. */
export function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (inner, key) =>
        typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[key] : undefined,
      value,
    );
}

export type Container = Readonly<{
  name: string;
  image: string;
  args?: readonly string[];
  env?: readonly Readonly<{ name: string; value?: string }>[];
  ports?: readonly Readonly<{ name: string; containerPort: number }>[];
  volumeMounts?: readonly Readonly<{ name: string; mountPath: string; readOnly?: boolean }>[];
  securityContext?: unknown;
}>;

export type PodSpec = Readonly<{
  containers: readonly Container[];
  initContainers?: readonly Container[];
  volumes?: readonly Readonly<{ name: string }>[];
  securityContext?: unknown;
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  terminationGracePeriodSeconds?: number;
  restartPolicy?: string;
}>;

type Labels = Readonly<Record<string, string>>;

/** A pod, or the template of one. */
export type Pod = Readonly<{ of: string; labels: Labels; annotations: Labels; spec: PodSpec }>;

const templates: Readonly<Record<string, string>> = {
  Deployment: 'spec.template',
  Job: 'spec.template',
  CronJob: 'spec.jobTemplate.spec.template',
};

export function podsOf(manifests: readonly Manifest[]): readonly Pod[] {
  return manifests.flatMap((manifest) => {
    const path = templates[manifest.kind];
    const pod = path === undefined ? manifest : at(manifest, path);
    if (path === undefined && manifest.kind !== 'Pod') return [];
    const { labels = {}, annotations = {} } = (at(pod, 'metadata') ?? {}) as Partial<Pod>;
    const of = `${manifest.kind} ${manifest.metadata.name}`;
    return [{ of, labels, annotations, spec: at(pod, 'spec') as PodSpec }];
  });
}

export function podOf(manifests: readonly Manifest[], of: string): Pod {
  const found = podsOf(manifests).filter((pod) => pod.of === of);
  assert.equal(found.length, 1, `${found.length} of ${of}`);
  return found[0] as Pod;
}

export const containersOf = ({ spec }: Pod): readonly Container[] => [
  ...spec.containers,
  ...(spec.initContainers ?? []),
];

export const envOf = ({ env = [] }: Container): Readonly<Record<string, string>> =>
  Object.fromEntries(env.map(({ name, value = '' }) => [name, value]));
