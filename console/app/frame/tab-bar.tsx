import { Link, useLocation } from '@tanstack/react-router';
import type { Feature, Tab } from '../../components/feature.ts';
import { useText } from '../../components/text/use-text.ts';
import { featureOf } from '../features.ts';
import styles from './tab-bar.module.css';

/** The tab below whose path a page is: the longest wins, since `/sagas` is above `/sagas/workflows`. */
export function tabOf(feature: Feature, pathname: string): Tab | undefined {
  return feature.tabs
    .filter(({ path }) => pathname === path || pathname.startsWith(`${path}/`))
    .toSorted((a, b) => b.path.length - a.path.length)[0];
}

/** The pages at the top of an area. They are links: they can be opened in a tab of the browser, and shared. */
export function TabBar() {
  const { pathname } = useLocation();
  const feature = featureOf(pathname);
  if (feature === undefined || feature.tabs.length === 0) return null;
  return <Tabs feature={feature} current={tabOf(feature, pathname)} />;
}

function Tabs({ feature, current }: Readonly<{ feature: Feature; current: Tab | undefined }>) {
  const texts = useText(feature.texts);
  return (
    <nav aria-label={texts.area} className={styles['bar']}>
      <ul className={styles['tabs']}>
        {feature.tabs.map((tab) => (
          <li key={tab.path}>
            <Link
              to={tab.path}
              className={styles['tab']}
              aria-current={tab === current ? 'page' : undefined}
              data-current={tab === current}
            >
              {String(texts[tab.title])}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
