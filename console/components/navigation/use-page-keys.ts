import { useEffect, useRef } from 'react';
import { tinykeys } from 'tinykeys';
import { isTyping } from '../list/list-keys.ts';
import { usePreferences } from '../preferences/preferences.tsx';

/**
 * Keys of a whole page, such as `p` or `Control+Enter`. Letters do nothing where somebody types, in a dialog, or for
 * those who switched off keys without a modifier.
 */
export function usePageKeys(actions: Readonly<Record<string, (() => void) | undefined>>): void {
  const [{ keys }] = usePreferences();
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  const names = Object.keys(actions).join(' ');
  useEffect(() => {
    const bindings = names.split(' ').map((name) => {
      const act = (event: KeyboardEvent): void => {
        const isLetter = !/(Control|Meta|Alt|\$mod)\+/.test(name);
        if (isLetter && (keys !== 'on' || isTyping(event.target))) return;
        if (
          event.defaultPrevented ||
          document.querySelector('[role="alertdialog"], [role="dialog"]') !== null
        )
          return;
        const action = latest.current[name];
        if (action === undefined) return;
        event.preventDefault();
        action();
      };
      return [name, act] as const;
    });
    return tinykeys(window, Object.fromEntries(bindings), {
      ignore: (event) => event.repeat || event.isComposing,
    });
  }, [names, keys]);
}
