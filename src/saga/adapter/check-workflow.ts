import { failurePoints, type FailurePoint, type UndoStep } from '../domain/failure-points.ts';
import type { KnownServices } from '../domain/parse-workflow.ts';
import { workflowHash } from '../domain/workflow-hash.ts';
import type { Flaw } from '../domain/workflow.ts';
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
    }>;

export type CheckedPoint = Omit<FailurePoint, 'undo'> & Readonly<{ undo: readonly CheckedUndo[] }>;

export type CheckedUndo =
  | Readonly<{ step: string; does: 'call'; method: string; left_out: readonly string[] }>
  | Exclude<UndoStep, Readonly<{ does: 'call' }>>;

/** Without services, whether there are such services is not looked at. */
export function checkWorkflow(text: string, services: KnownServices | null): CheckedWorkflow {
  const read = readWorkflow(text, services);
  if (!read.ok) return { valid: false, flaws: read.flaws };
  const { workflow } = read;
  return {
    valid: true,
    name: workflow.name,
    hash: workflowHash(workflow),
    step_count: workflow.steps.length,
    failure_points: failurePoints(workflow, services).map((point) => ({
      ...point,
      undo: point.undo.map(presentUndo),
    })),
  };
}

function presentUndo(undo: UndoStep): CheckedUndo {
  if (undo.does !== 'call') return undo;
  return { step: undo.step, does: undo.does, method: undo.method, left_out: undo.leftOut };
}
