/** With its zone. Between time and zone a blank is a plus sign that was put into a URL as it is. */
const form = /^((\d{4})-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[ +-]\d\d:\d\d)$/;

export const INSTANT_PATTERN = form.source;

/** An ISO 8601 timestamp that PostgreSQL can hold; null for any other text. */
export function readInstant(text: string): Date | null {
  const [, day] = form.exec(text) ?? [];
  if (day === undefined || !isRealDay(day)) return null;
  const instant = new Date(text.replace(' ', '+'));
  if (Number.isNaN(instant.getTime())) return null;
  // A zone may carry it out of the years of four digits.
  const year = instant.getUTCFullYear();
  return year >= 1 && year <= 9999 ? instant : null;
}

/** Date would read February 30 as March 2. */
function isRealDay(day: string): boolean {
  const instant = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(instant.getTime()) && instant.toISOString().startsWith(day);
}
