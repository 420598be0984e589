import type { Call } from '../domain/settlement.ts';
import { mapInput, mapPath, mapUndoInput, type Sources } from '../domain/workflow/mapping.ts';
import { parseCheckedMethod } from '../domain/workflow/method.ts';
import type { LeasedSaga } from './leased-sagas.ts';

export type MadeRequest =
  | Readonly<{ ok: true; method: string; request: unknown; isPayload: boolean }>
  | Readonly<{ ok: false; defect: string }>;

/** Fills in the mapping of a call with the saga's payload and the responses of earlier steps. */
export function makeRequest({ workflow, payload, state }: LeasedSaga, call: Call): MadeRequest {
  const step = workflow.steps[call.step];
  if (step === undefined) return { ok: false, defect: `there is no step ${call.step}` };
  if ('asksFor' in call) return makePoll({ payload, state }, call);
  const isUndo = call.op === 'COMPENSATE';
  const own = isUndo && Object.hasOwn(state.outputs, step.name) ? state.outputs[step.name] : undefined;
  const sources: Sources = { input: payload, outputs: state.outputs, own };
  const mapped = isUndo ? mapUndoInput(step.undoInput, sources) : mapInput(step.input, sources);
  if (!mapped.ok) return mapped;
  const method = fillMethod(call.method, sources);
  const isPayload = (isUndo ? step.undoInput : step.input) === null;
  return method.ok ? { ok: true, method: method.value, request: mapped.value, isPayload } : method;
}

/** A poll has no body. */
function makePoll({ payload, state }: Pick<LeasedSaga, 'payload' | 'state'>, call: Call): MadeRequest {
  const sources = { input: payload, outputs: state.outputs, own: call.asksFor };
  const method = fillMethod(call.method, sources);
  return method.ok ? { ok: true, method: method.value, request: null, isPayload: false } : method;
}

/** Only paths of HTTP methods have references. */
function fillMethod(
  text: string,
  sources: Sources,
): Readonly<{ ok: true; value: string }> | Readonly<{ ok: false; defect: string }> {
  const parsed = parseCheckedMethod(text);
  if (!parsed.ok || parsed.method.type === 'grpc') return { ok: true, value: text };
  const path = mapPath(parsed.method.path, sources);
  return path.ok ? { ok: true, value: `${parsed.method.verb} ${path.value}` } : path;
}
