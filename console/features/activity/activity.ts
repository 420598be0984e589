import { History } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage } from '../../components/navigation/routes.ts';
import { activityTexts as texts } from './texts/activity-texts.ts';

/** What people and policies did. */
export const activity = defineFeature(texts, {
  segment: 'activity',
  icon: History,
  key: 'a',
  home: '/activity',
  tabs: [],
  routes: (root) => [lazyPage(root, '/activity', async () => import('./activity-page.tsx'), 'ActivityPage')],
});
