/** The one form in which instants leave over JSON: UTC, milliseconds, `2026-02-20T10:30:00.000+00:00`. */
export function formatTimestamp(instant: Date): string {
  return instant.toISOString().replace('Z', '+00:00');
}
