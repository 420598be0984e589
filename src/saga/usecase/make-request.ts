import type { Call } from '../domain/decide.ts';
import { mapInput, mapPath, mapUndoInput, type Sources } from '../domain/mapping.ts';
import { parseMethod } from '../domain/method.ts';
import type { HeldSaga } from './ports.ts';

export type MadeRequest =
  | Readonly<{ ok: true; method: string; request: unknown; isPayload: boolean }>
  | Readonly<{ ok: false; defect: string }>;

/** What a call sends: its mapping filled in with the saga's payload and the answers of the steps before it. */
export function makeRequest({ workflow, payload, state }: HeldSaga, call: Call): MadeRequest {
  const step = workflow.steps[call.step];
  if (step === undefined) return { ok: false, defect: `there is no step ${call.step}` };
  const isUndo = call.op === 'COMPENSATE';
  const own = isUndo && Object.hasOwn(state.outputs, step.name) ? state.outputs[step.name] : undefined;
  const sources: Sources = { input: payload, outputs: state.outputs, own };
  const mapped = isUndo ? mapUndoInput(step.undoInput, sources) : mapInput(step.input, sources);
  if (!mapped.ok) return mapped;
  const method = fillMethod(call.method, sources);
  const isPayload = (isUndo ? step.undoInput : step.input) === null;
  return method.ok ? { ok: true, method: method.value, request: mapped.value, isPayload } : method;
}

/** Only the path of an HTTP method has references. */
function fillMethod(
  text: string,
  sources: Sources,
): Readonly<{ ok: true; value: string }> | Readonly<{ ok: false; defect: string }> {
  const parsed = parseMethod(text);
  if (!parsed.ok || parsed.method.type === 'grpc') return { ok: true, value: text };
  const path = mapPath(parsed.method.path, sources);
  return path.ok ? { ok: true, value: `${parsed.method.verb} ${path.value}` } : path;
}
