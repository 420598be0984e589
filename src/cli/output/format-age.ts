const units = [
  { name: 'y', seconds: 365 * 86_400, from: 2 * 365 * 86_400 },
  { name: 'd', seconds: 86_400, from: 2 * 86_400 },
  { name: 'h', seconds: 3600, from: 3600 },
  { name: 'm', seconds: 60, from: 60 },
  { name: 's', seconds: 1, from: 1 },
] as const;

/** `3m ago`. Clocks differ, so an instant in the near future is `now`. */
export function formatAge(instant: string | null, now: Date): string {
  if (instant === null) return '-';
  const seconds = Math.floor((now.getTime() - Date.parse(instant)) / 1000);
  if (Number.isNaN(seconds)) return instant;
  const unit = units.find(({ from }) => seconds >= from);
  return unit === undefined ? 'now' : `${Math.floor(seconds / unit.seconds)}${unit.name} ago`;
}
