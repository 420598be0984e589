/** The one form in which instants leave over JSON: UTC, milliseconds, `2026-02-20T10:30:00.000+00:00`. */
export function formatTimestamp(instant: Date): string {
  return instant.toISOString().replace('Z', '+00:00');
}

/** PostgreSQL has times that a Date cannot say: `infinity`, which is read as a number, and years beyond 275760. */
export type ReadInstant = Date | number;

/** As `formatTimestamp`; null where there is none, or none that could be written. */
export function formatInstant(instant: ReadInstant | null): string | null {
  return instant instanceof Date && !Number.isNaN(instant.getTime()) ? formatTimestamp(instant) : null;
}

/** The limit of a Date. */
const furthestMs = 8.64e15;

/** In milliseconds since 1970; what a Date cannot say is as far away as one can be. */
export function instantMs(instant: ReadInstant): number {
  const ms = Number(instant);
  return Number.isNaN(ms) ? furthestMs : Math.min(Math.max(ms, -furthestMs), furthestMs);
}
