import { failurePoints, type FailurePoint, type UndoStep } from '../domain/workflow/failure-points.ts';
import type { KnownServices } from '../domain/workflow/parse-workflow.ts';
import { workflowHash } from '../domain/workflow/workflow-hash.ts';
import type { Flaw } from '../domain/workflow/workflow.ts';
import { checkMethods, type AskMethods } from '../domain/workflow/check-methods.ts';
import { readWorkflow } from './workflow-yaml.ts';

/** The result of checking a definition without running it. */
export type CheckedWorkflow =
  | Readonly<{ valid: false; flaws: readonly Flaw[] }>
  | Readonly<{
      valid: true;
      name: string;
      hash: string;
      step_count: number;
      failure_points: readonly CheckedPoint[];
      /** Services whose methods could not be checked. */
      unchecked: readonly Readonly<{ service: string; reason: string }>[];
    }>;

export type CheckedPoint = Omit<FailurePoint, 'undo'> & Readonly<{ undo: readonly CheckedUndo[] }>;

export type CheckedUndo =
  | Readonly<{ step: string; does: 'call'; method: string; left_out: readonly string[] }>
  | Exclude<UndoStep, Readonly<{ does: 'call' }>>;

/** Without services, neither their existence nor their methods are checked. */
export async function checkWorkflow(
  text: string,
  services: KnownServices | null,
  askMethods: AskMethods,
): Promise<CheckedWorkflow> {
  const read = readWorkflow(text, services);
  if (!read.ok) return { valid: false, flaws: read.flaws };
  const { workflow } = read;
  const { flaws, unchecked } = await checkMethods(askMethods, workflow);
  if (flaws.length > 0) return { valid: false, flaws };
  return {
    valid: true,
    name: workflow.name,
    hash: workflowHash(workflow),
    step_count: workflow.steps.length,
    failure_points: failurePoints(workflow, services).map((point) => ({
      ...point,
      undo: point.undo.map(presentUndo),
    })),
    unchecked,
  };
}

function presentUndo(undo: UndoStep): CheckedUndo {
  if (undo.does !== 'call') return undo;
  return { step: undo.step, does: undo.does, method: undo.method, left_out: undo.leftOut };
}
