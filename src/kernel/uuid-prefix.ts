/** UUIDs from the first to the last, both included. */
export type UuidRange = Readonly<{ first: string; last: string }>;

/** UUIDs of version 7 begin with the time: those made within five hours share six digits. */
export const minPrefixDigits = 6;

const h = '[0-9a-fA-F]';
/** With its hyphens, or without any. */
export const UUID_PREFIX_PATTERN = `^(?:${h}{${minPrefixDigits},32}|${h}{8}-(?:${h}{0,4}|${h}{4}-(?:${h}{0,4}|${h}{4}-(?:${h}{0,4}|${h}{4}-${h}{0,12}))))$`;
const pattern = new RegExp(UUID_PREFIX_PATTERN);

const lowest = '00000000-0000-0000-0000-000000000000';
const highest = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The UUIDs that begin with the text, which may lack its hyphens; null if none can, or if the text is too short. */
export function uuidsWithPrefix(text: string): UuidRange | null {
  if (!pattern.test(text)) return null;
  const prefix = (text.includes('-') ? text : hyphenated(text)).toLowerCase();
  return { first: prefix + lowest.slice(prefix.length), last: prefix + highest.slice(prefix.length) };
}

function hyphenated(digits: string): string {
  const ends = [8, 12, 16, 20, digits.length];
  return ends
    .map((end, i) => digits.slice(ends[i - 1] ?? 0, end))
    .filter((part) => part !== '')
    .join('-');
}
