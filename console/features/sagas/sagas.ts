import { Waypoints } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage } from '../../components/navigation/routes.ts';
import { sagasTexts as texts } from './texts/sagas-texts.ts';

/** Sagas: forward, back, and where they are stuck. */
export const sagas = defineFeature(texts, {
  segment: 'sagas',
  icon: Waypoints,
  key: 's',
  home: '/sagas',
  tabs: [
    { path: '/sagas', title: 'sagas' },
    { path: '/sagas/workflows', title: 'workflows' },
  ],
  routes: (root) => [
    lazyPage(root, '/sagas', async () => import('./list/sagas-page.tsx'), 'SagasPage'),
    lazyPage(root, '/sagas/$id', async () => import('./detail/saga-page.tsx'), 'SagaPage'),
    lazyPage(root, '/sagas/workflows', async () => import('./workflows/workflows-page.tsx'), 'WorkflowsPage'),
    lazyPage(
      root,
      '/sagas/workflows/$name',
      async () => import('./workflows/workflow-page.tsx'),
      'WorkflowPage',
    ),
  ],
});
