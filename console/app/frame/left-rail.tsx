import { Link } from '@tanstack/react-router';
import { PanelLeftClose, PanelLeftOpen } from 'lucide-react';
import type { Feature } from '../../components/feature.ts';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { useText } from '../../components/text/use-text.ts';
import { features } from '../features.ts';
import { appTexts } from '../texts/app-texts.ts';
import { AreaCount } from './area-count.tsx';
import styles from './left-rail.module.css';

/** The areas of the console, with what needs attention in each. In a drawer it is always wide. */
export function LeftRail({ isDrawer = false }: Readonly<{ isDrawer?: boolean }>) {
  const t = useText(appTexts);
  const [{ rail }, change] = usePreferences();
  const isNarrow = rail === 'narrow' && !isDrawer;
  const Fold = isNarrow ? PanelLeftOpen : PanelLeftClose;
  return (
    <nav className={styles['rail']} aria-label={t.navigation} data-narrow={isNarrow}>
      <ul className={styles['areas']}>
        {features.map((feature) => (
          <li key={feature.segment} className={styles['place']} data-area={feature.segment}>
            <Area feature={feature} />
          </li>
        ))}
      </ul>
      {isDrawer ? null : (
        <button
          type="button"
          className={styles['area']}
          aria-expanded={!isNarrow}
          onClick={() => change({ rail: isNarrow ? 'wide' : 'narrow' })}
        >
          <Fold size={16} aria-hidden />
          <span className={styles['label']}>{isNarrow ? t.widenNavigation : t.narrowNavigation}</span>
        </button>
      )}
    </nav>
  );
}

function Area({ feature }: Readonly<{ feature: Feature }>) {
  const { area } = useText(feature.texts);
  const Icon = feature.icon;
  return (
    <Link
      to={feature.home}
      activeOptions={{ exact: false, includeSearch: false }}
      className={styles['area']}
      aria-keyshortcuts={`g ${feature.key}`}
    >
      <Icon size={16} aria-hidden />
      <span className={styles['label']}>{area}</span>
      <AreaCount segment={feature.segment} />
    </Link>
  );
}
