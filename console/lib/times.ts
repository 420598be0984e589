import type { Language } from './text/catalogue.ts';

export type TimeZone = 'local' | 'utc';

const steps = [
  { unit: 's', ms: 1000 },
  { unit: 'm', ms: 60_000 },
  { unit: 'h', ms: 3_600_000 },
  { unit: 'd', ms: 86_400_000 },
] as const;

const unitNames: Readonly<Record<Language, Readonly<Record<'s' | 'm' | 'h' | 'd', string>>>> = {
  en: { s: ' s', m: ' m', h: ' h', d: ' d' },
  ja: { s: '秒', m: '分', h: '時間', d: '日' },
};

/** A duration in its largest unit, from an hour on with the next one: `12 m`, `1 h 04 m`. */
export function formatDuration(ms: number, language: Language): string {
  const names = unitNames[language];
  const past = Math.max(0, ms);
  const i = Math.max(
    0,
    steps.findLastIndex((step) => past >= step.ms),
  );
  const { unit, ms: unitMs } = steps[i] ?? steps[0];
  const whole = `${Math.floor(past / unitMs)}${names[unit]}`;
  const below = steps[i - 1];
  const rest = below === undefined ? 0 : Math.floor((past % unitMs) / below.ms);
  if (below === undefined || i < 2 || rest === 0 || past >= 10 * 86_400_000) return whole;
  const digits = unit === 'h' ? String(rest).padStart(2, '0') : String(rest);
  return `${whole}${language === 'en' ? ' ' : ''}${digits}${names[below.unit]}`;
}

/** The clock time, with the date unless it is the same day as now: `14:03:21`, `2026-11-18 14:03`. */
export function formatAbsolute(at: number, now: number, zone: TimeZone): string {
  const one = partsOf(at, zone);
  const isToday = one.date === partsOf(now, zone).date;
  return isToday ? one.time : `${one.date} ${one.time.slice(0, 5)}`;
}

/** Everything: for hover, focus and copying. */
export function formatIso(at: number, zone: TimeZone): string {
  if (zone === 'utc') return new Date(at).toISOString();
  const offset = -new Date(at).getTimezoneOffset();
  const shifted = new Date(at + offset * 60_000).toISOString().slice(0, -1);
  const [sign, minutes] = [offset < 0 ? '-' : '+', Math.abs(offset)];
  return `${shifted}${sign}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function partsOf(at: number, zone: TimeZone): Readonly<{ date: string; time: string }> {
  const [date = '', time = ''] = formatIso(at, zone).split('T');
  return { date, time: time.slice(0, 8) };
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
