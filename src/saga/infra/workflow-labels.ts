/** Who may register workflows without end must not make time series without end. */
export type WorkflowLabels = Readonly<{
  workflow(name: string): string;
  /** A step of a workflow, by both its labels. */
  step(workflow: string, step: string): Readonly<{ workflow: string; step: string }>;
}>;

const others = 'other';

export function createWorkflowLabels({ maxWorkflows = 200, maxSteps = 1000 } = {}): WorkflowLabels {
  const workflows = new Set<string>();
  const steps = new Set<string>();
  const isKept = (known: Set<string>, name: string, limit: number): boolean => {
    if (!known.has(name) && known.size < limit) known.add(name);
    return known.has(name);
  };
  const workflow = (name: string): string => (isKept(workflows, name, maxWorkflows) ? name : others);
  return {
    workflow,
    step(name, step) {
      const label = workflow(name);
      const isOwn = label === name && isKept(steps, JSON.stringify([name, step]), maxSteps);
      return { workflow: label, step: isOwn ? step : others };
    },
  };
}
