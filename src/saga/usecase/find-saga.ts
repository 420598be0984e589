import { AppError } from '../../kernel/errors.ts';
import type { SagaReader, ToldSaga } from './reading-ports.ts';

/** A saga with everything that was done for it, archived or not. */
export async function getSaga(reader: Pick<SagaReader, 'find'>, sagaId: string): Promise<ToldSaga> {
  return (await reader.find(sagaId)) ?? throwNotFound(`saga not found: saga_id=${sagaId}`);
}

export function throwNotFound(message: string): never {
  throw new AppError('SYS_SAGA_NOT_FOUND', 'not_found', message);
}
