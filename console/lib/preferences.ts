import { languages, type Language } from './text/catalogue.ts';

export type Preferences = Readonly<{
  theme: 'system' | 'light' | 'dark';
  density: 'compact' | 'normal' | 'roomy';
  language: Language;
  timeZone: 'local' | 'utc';
  /** Whether keys without a modifier do something. */
  keys: 'on' | 'off';
  /** The left rail: with names, or icons only. */
  rail: 'wide' | 'narrow';
}>;

const choices = {
  theme: ['system', 'light', 'dark'],
  density: ['compact', 'normal', 'roomy'],
  language: languages,
  timeZone: ['local', 'utc'],
  keys: ['on', 'off'],
  rail: ['wide', 'narrow'],
} as const satisfies { [Name in keyof Preferences]: readonly Preferences[Name][] };

export function defaultPreferences(browserLanguages: readonly string[]): Preferences {
  const first = browserLanguages.map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage);
  return {
    theme: 'system',
    density: 'normal',
    language: first ?? 'en',
    timeZone: 'local',
    keys: 'on',
    rail: 'wide',
  };
}

function isLanguage(tag: string): tag is Language {
  return (languages as readonly string[]).includes(tag);
}

/** What was stored, possibly by another version: unknown values are ignored. */
export function readPreferences(stored: string | null, defaults: Preferences): Preferences {
  let given: unknown = null;
  try {
    given = JSON.parse(stored ?? 'null');
  } catch {
    return defaults;
  }
  if (typeof given !== 'object' || given === null) return defaults;
  const known = Object.entries(given).filter(([name, value]) =>
    ((choices as Readonly<Record<string, readonly string[]>>)[name] ?? []).includes(value as string),
  );
  return { ...defaults, ...(Object.fromEntries(known) as Partial<Preferences>) };
}
