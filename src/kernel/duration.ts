export const secondMs = 1000;
export const minuteMs = 60_000;
export const hourMs = 3_600_000;
export const dayMs = 86_400_000;

const UNITS = [
  ['d', dayMs],
  ['h', hourMs],
  ['m', minuteMs],
  ['s', secondMs],
  ['ms', 1],
] as const;

/** Whole numbers with units, the largest unit first, each at most once. */
const SHAPE = /^(?=.)(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9})s)?(?:(\d{1,12})ms)?$/;

/** For schemas. */
export const durationPattern = SHAPE.source;

/** `1h30m` in milliseconds; undefined if the text is no duration. */
export function parseDuration(text: string): number | undefined {
  const match = SHAPE.exec(text);
  if (!match) return undefined;
  return UNITS.reduce((sum, [, unitMs], index) => sum + Number(match[index + 1] ?? 0) * unitMs, 0);
}

/** The shortest text that `parseDuration` reads as this. */
export function formatDuration(ms: number): string {
  let rest = ms;
  let text = '';
  for (const [unit, unitMs] of UNITS) {
    const count = Math.floor(rest / unitMs);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * unitMs;
  }
  return text || '0s';
}
