import type { Masks } from '../kernel/protect/protection.ts';
import type { AuditEvent } from './chain.ts';

/** As it is shown. */
export type CoverEvent = (event: AuditEvent) => AuditEvent;

/**
 * Covers what people wrote as reasons, and what the detail quotes. The hashes of the chain are those of what is stored,
 * so an event that says `masked` cannot be verified from a copy.
 */
export function createCoverEvent(masks: Masks): CoverEvent {
  if (masks.isEmpty) return (event) => event;
  return (event) => {
    const reason = typeof event['reason'] === 'string' ? masks.text(event['reason']) : event['reason'];
    const before = JSON.stringify(event['detail'] ?? null);
    const detail = masks.json(before);
    if (reason === event['reason'] && detail === before) return event;
    return { ...event, reason, detail: JSON.parse(detail) as unknown, masked: true };
  };
}
