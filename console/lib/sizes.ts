/** Sizes in units of 1000, with three digits at most: `1.4 kB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit] ?? ''}`;
}

/** Digits in groups, with thin spaces: 12 431. */
export function formatCount(count: number): string {
  return String(Math.trunc(count)).replaceAll(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** At most four characters, for places with no room for more: 999, 1k, 12k, 3M. Rounded down. */
export function shortCount(count: number): string {
  if (count < 1000) return String(Math.trunc(count));
  return count < 1_000_000 ? `${Math.trunc(count / 1000)}k` : `${Math.trunc(count / 1_000_000)}M`;
}
