import { at, type PodSpec } from './chart.ts';

/**
 * What in a pod breaks the restricted Pod Security Standard, and beyond it our own rules: a read-only root, the image's
 * account, bounded memory, and no token of the Kubernetes API.
 */
export function violationsOf(spec: PodSpec): readonly string[] {
  const problems: string[] = [];
  const demand = (isTrue: boolean, problem: string): void => {
    if (!isTrue) problems.push(problem);
  };
  demand(at(spec, 'securityContext.runAsNonRoot') === true, 'runAsNonRoot');
  demand(at(spec, 'securityContext.runAsUser') === 65_532, 'runAsUser');
  demand(at(spec, 'securityContext.seccompProfile.type') === 'RuntimeDefault', 'seccompProfile');
  demand(spec.automountServiceAccountToken === false, 'automountServiceAccountToken');
  for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) demand(at(spec, name) === undefined, name);
  for (const volume of spec.volumes ?? [])
    demand(
      ['configMap', 'emptyDir', 'projected', 'secret', 'csi', 'downwardAPI'].some((type) => type in volume),
      `volume ${volume.name}`,
    );
  for (const container of [...spec.containers, ...(spec.initContainers ?? [])]) {
    const context = (path: string): unknown => at(container.securityContext, path);
    const about = (what: string): string => `${container.name}: ${what}`;
    demand(context('allowPrivilegeEscalation') === false, about('allowPrivilegeEscalation'));
    demand(context('readOnlyRootFilesystem') === true, about('readOnlyRootFilesystem'));
    demand(context('privileged') === undefined, about('privileged'));
    demand(JSON.stringify(context('capabilities')) === '{"drop":["ALL"]}', about('capabilities'));
    demand(typeof at(container, 'resources.limits.memory') === 'string', about('memory limit'));
    demand(!(container.ports ?? []).some((port) => 'hostPort' in port), about('hostPort'));
  }
  return problems;
}
