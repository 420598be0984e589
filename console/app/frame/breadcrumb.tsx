import { Link, useLocation } from '@tanstack/react-router';
import type { Feature } from '../../components/feature.ts';
import { usePageName } from '../../components/navigation/page-name.tsx';
import { useText } from '../../components/text/use-text.ts';
import { featureOf } from '../features.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './breadcrumb.module.css';
import { tabOf } from './tab-bar.tsx';

/** Redrive › area › tab › page, each a link but the last. */
export function Breadcrumb() {
  const t = useText(appTexts);
  const { pathname } = useLocation();
  const feature = featureOf(pathname);
  return (
    <nav aria-label={t.breadcrumb} className={styles['breadcrumb']}>
      <ol>
        <li>
          <Link to="/" className={styles['brand']}>
            Redrive
          </Link>
        </li>
        {feature === undefined ? <Current /> : <Places feature={feature} pathname={pathname} />}
      </ol>
    </nav>
  );
}

function Places({ feature, pathname }: Readonly<{ feature: Feature; pathname: string }>) {
  const texts = useText(feature.texts);
  const tab = tabOf(feature, pathname);
  const tabTitle = tab === undefined ? '' : String(texts[tab.title]);
  const { name } = usePageName();
  const isAtTop = tab === undefined ? feature.home === pathname : tab.path === pathname;
  const links = [
    ...(isAtTop && name === texts.area ? [] : [{ to: feature.home, text: texts.area }]),
    ...(tab === undefined || isAtTop || tabTitle === texts.area ? [] : [{ to: tab.path, text: tabTitle }]),
  ];
  return (
    <>
      {links.map(({ to, text }) => (
        <li key={to} className={styles['place']}>
          <Link to={to}>{text}</Link>
        </li>
      ))}
      <Current />
    </>
  );
}

function Current() {
  const { name } = usePageName();
  if (name === '') return null;
  return (
    <li aria-current="page" className={styles['current']} title={name}>
      {name}
    </li>
  );
}
