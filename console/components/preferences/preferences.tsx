import {
  createContext,
  startTransition,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useState,
  type ReactNode,
} from 'react';
import { defaultPreferences, readPreferences, type Preferences } from '../../lib/preferences.ts';

type Change = (change: Partial<Preferences>) => void;

const storageKey = 'redrive-preferences';
const PreferencesContext = createContext<readonly [Preferences, Change]>([defaultPreferences([]), () => {}]);

/** Keeps the preferences in this browser, and applies those that only change the style. */
export function PreferencesProvider({ children }: Readonly<{ children: ReactNode }>) {
  const [preferences, setPreferences] = useState(() =>
    readPreferences(read(), defaultPreferences(navigator.languages)),
  );
  // Before the first paint, which would show the wrong theme.
  useLayoutEffect(() => {
    const { dataset } = document.documentElement;
    dataset['theme'] = preferences.theme;
    dataset['density'] = preferences.density;
    document.documentElement.lang = preferences.language;
  }, [preferences]);
  useEffect(() => {
    const follow = (event: StorageEvent): void => {
      if (event.key === storageKey)
        startTransition(() => setPreferences((now) => readPreferences(event.newValue, now)));
    };
    addEventListener('storage', follow);
    return () => removeEventListener('storage', follow);
  }, []);
  const value = useMemo(
    () =>
      [
        preferences,
        (change: Partial<Preferences>) => {
          const next = { ...preferences, ...change };
          // What is on screen stays until the texts of another language are there.
          startTransition(() => setPreferences(next));
          write(JSON.stringify(next));
        },
      ] as const,
    [preferences],
  );
  return <PreferencesContext value={value}>{children}</PreferencesContext>;
}

export function usePreferences(): readonly [Preferences, Change] {
  return useContext(PreferencesContext);
}

/** Storage may be forbidden; then the preferences last as long as the page. */
function read(): string | null {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}

function write(text: string): void {
  try {
    localStorage.setItem(storageKey, text);
  } catch {
    // Not kept.
  }
}
