import { useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { tinykeys } from 'tinykeys';
import { isTyping } from '../../components/list/list-keys.ts';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { features } from '../features.ts';

/** `g` and the letter of an area go there, for those who have keys without a modifier. */
export function useGoKeys(): void {
  const navigate = useNavigate();
  const [{ keys }] = usePreferences();
  useEffect(() => {
    if (keys !== 'on') return undefined;
    const bindings = features.map(({ key, home }) => {
      const go = (event: KeyboardEvent): void => {
        if (isTyping(event.target)) return;
        if (document.querySelector('[role="alertdialog"], [role="dialog"]') !== null) return;
        event.preventDefault();
        // The second letter may be a key of the list as well.
        event.stopPropagation();
        void navigate({ to: home });
      };
      return [`g ${key}`, go] as const;
    });
    return tinykeys(window, Object.fromEntries(bindings), {
      capture: true,
      ignore: (event) => event.repeat || event.isComposing,
    });
  }, [keys, navigate]);
}
