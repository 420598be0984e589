import { Link } from '@tanstack/react-router';
import type { Feature } from '../../components/feature.ts';
import { useText } from '../../components/text/use-text.ts';
import { features } from '../features.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './left-rail.module.css';

export function LeftRail() {
  const t = useText(appTexts);
  return (
    <nav className={styles['rail']} aria-label={t.navigation}>
      <ul className={styles['areas']}>
        {features.map((feature) => (
          <li key={feature.segment}>
            <Area feature={feature} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Area({ feature }: Readonly<{ feature: Feature }>) {
  const { area } = useText(feature.texts);
  const Icon = feature.icon;
  return (
    <Link to={feature.home} className={styles['area']} aria-keyshortcuts={`g ${feature.key}`}>
      <Icon size={16} aria-hidden />
      <span>{area}</span>
    </Link>
  );
}
