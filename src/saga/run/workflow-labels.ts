import { createBoundedLabels, otherLabel } from '../../platform/telemetry/bounded-labels.ts';

/** Metric labels of workflows and steps, limited in number. */
export type WorkflowLabels = Readonly<{
  workflow(name: string): string;
  /** Both labels of a step. */
  step(workflow: string, step: string): Readonly<{ workflow: string; step: string }>;
}>;

export function createWorkflowLabels({
  maxWorkflows,
  maxSteps = 1000,
}: Readonly<{ maxWorkflows?: number; maxSteps?: number }> = {}): WorkflowLabels {
  const workflows = createBoundedLabels({ limit: maxWorkflows });
  const steps = createBoundedLabels({ limit: maxSteps });
  return {
    workflow: (name) => workflows.labelOf(name),
    step(name, step) {
      const workflow = workflows.labelOf(name);
      const isOwn = workflow === name && steps.labelOf(JSON.stringify([name, step])) !== otherLabel;
      return { workflow, step: isOwn ? step : otherLabel };
    },
  };
}
