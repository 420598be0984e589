import { Activity } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage } from '../../components/navigation/routes.ts';
import { systemTexts as texts } from './texts/system-texts.ts';

/** Readiness, replicas, ingest, accounting, notifiers and configuration. */
export const system = defineFeature(texts, {
  segment: 'system',
  icon: Activity,
  key: 'y',
  home: '/system',
  tabs: [],
  routes: (root) => [lazyPage(root, '/system', async () => import('./system-page.tsx'), 'SystemPage')],
});
