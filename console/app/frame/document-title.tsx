import { useLocation } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Feature } from '../../components/feature.ts';
import { usePageName } from '../../components/navigation/page-name.tsx';
import { useSession } from '../../components/session/session.tsx';
import { useText } from '../../components/text/use-text.ts';
import { featureOf } from '../features.ts';

/** The page first: tabs of a browser show only the beginning. */
export function DocumentTitle() {
  const { pathname } = useLocation();
  const feature = featureOf(pathname);
  return feature === undefined ? <Title area="" /> : <AreaTitle feature={feature} />;
}

function AreaTitle({ feature }: Readonly<{ feature: Feature }>) {
  const { area } = useText(feature.texts);
  return <Title area={area} />;
}

function Title({ area }: Readonly<{ area: string }>) {
  const { name } = usePageName();
  const { me } = useSession();
  useEffect(() => {
    const parts = new Set([name, area, 'Redrive', me.environment].filter((part) => part !== ''));
    document.title = [...parts].join(' · ');
  }, [name, area, me.environment]);
  return null;
}
