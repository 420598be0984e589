import { resumeStuck } from '../domain/resume-stuck.ts';
import { fromStored } from '../domain/workflow/workflow-hash.ts';
import {
  lockSaga,
  readLog,
  refuse,
  settleLocked,
  shortLockTimeout,
  unlessLocked,
  type DecideDeps,
} from './locked-saga.ts';

/**
 * Retries a saga that is stuck only because this service was down. `left`: it stays stuck. `busy`: another transaction
 * has locked it; try again later.
 */
export async function resumeSaga(
  deps: DecideDeps,
  sagaId: string,
  service: string,
): Promise<'resumed' | 'left' | 'busy'> {
  const result = await unlessLocked(deps.db, shortLockTimeout, async (tx) => {
    const found = await lockSaga(tx, sagaId);
    if (found === null || found.definition === null) return null;
    const log = await readLog(tx, sagaId);
    const workflow = fromStored(found.definition);
    return settleLocked(deps, tx, { found, workflow, adoption: null, log }, (state, context) => {
      const resumed = resumeStuck(workflow, state, service, context);
      return resumed ?? refuse('conflict', 'not stuck because of this service alone');
    });
  });
  if (result?.outcome !== 'settled') return result?.outcome === 'busy' ? 'busy' : 'left';
  deps.onSettled?.(result.before, result.after);
  return 'resumed';
}
