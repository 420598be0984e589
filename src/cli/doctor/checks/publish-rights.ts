import type { Config } from '../../../config/config.ts';
import type { Broker } from '../../../platform/broker/port.ts';
import { ok, problem, skipped, warning, type Finding } from '../finding.ts';

/** Asks the broker for the rights on every topic that is named in the configuration; writes nothing. */
export async function examinePublishRights(broker: Broker, { dlq, outbox, saga }: Config): Promise<Finding> {
  const named = [
    ...(dlq.allowedTargets ?? []).filter((target) => !/[*?]/.test(target)),
    ...outbox.destinations.flatMap((one) => (one.type === 'kafka' ? [one.topic] : [])),
    saga.eventsTopic,
  ];
  const topics = [...new Set(named)];
  if (topics.length === 0)
    return skipped(
      'publishing',
      'no target is named; a retry needs the right to write to its original topic',
    );
  const troubles = [...(await broker.unwritable(topics))];
  if (troubles.length === 0) return ok('publishing', `may write to ${topics.join(', ')}`);
  const found = troubles
    .map(
      ([topic, { problem: why }]) =>
        `${topic} ${why === 'missing' ? 'does not exist' : 'may not be written to'}`,
    )
    .join(', ');
  return troubles.some(([, { problem: why }]) => why === 'denied')
    ? problem('publishing', found, 'give the user permission to WRITE and DESCRIBE these topics')
    : warning('publishing', found, 'create these topics, unless the broker creates them');
}
