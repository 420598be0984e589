import { useEffect, useState } from 'react';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { features } from '../features.ts';
import type { PageLink } from './entries.ts';

/** All pages at the top of an area, as the navigation names them. */
export function usePages(): readonly PageLink[] {
  const [{ language }] = usePreferences();
  const [pages, setPages] = useState<readonly PageLink[]>([]);
  useEffect(() => {
    let isOver = false;
    void Promise.all(
      features.map(async ({ texts, tabs, home, key }) => {
        const t = await texts.load(language);
        const keys = `g ${key}`;
        if (tabs.length === 0) return [{ to: home, label: t.area, keys }];
        return tabs.map(({ path, title }) => ({
          to: path,
          label: `${t.area} › ${String(t[title])}`,
          keys: path === home ? keys : null,
        }));
      }),
    ).then((found) => (isOver ? undefined : setPages(found.flat())));
    return () => {
      isOver = true;
    };
  }, [language]);
  return pages;
}
