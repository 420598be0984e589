import { failurePoints, type FailurePoint, type UndoStep } from '../domain/failure-points.ts';
import type { KnownServices } from '../domain/parse-workflow.ts';
import { workflowHash } from '../domain/workflow-hash.ts';
import type { Flaw } from '../domain/workflow.ts';
import { checkMethods, type AskMethods } from '../usecase/register-workflow.ts';
import { readWorkflow } from './workflow-yaml.ts';

/** What a definition would do, before anybody runs it. */
export type CheckedWorkflow =
  | Readonly<{ valid: false; flaws: readonly Flaw[] }>
  | Readonly<{
      valid: true;
      name: string;
      hash: string;
      step_count: number;
      failure_points: readonly CheckedPoint[];
      /** Services that could not be asked whether they have what is called. */
      unchecked: readonly Readonly<{ service: string; reason: string }>[];
    }>;

export type CheckedPoint = Omit<FailurePoint, 'undo'> & Readonly<{ undo: readonly CheckedUndo[] }>;

export type CheckedUndo =
  | Readonly<{ step: string; does: 'call'; method: string; left_out: readonly string[] }>
  | Exclude<UndoStep, Readonly<{ does: 'call' }>>;

/** Without services, whether there are such services, and what can be called there, is not looked at. */
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
