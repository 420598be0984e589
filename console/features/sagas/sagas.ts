import { Waypoints } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
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
    commandRoute(root, { path: '/sagas', texts, title: 'sagas', command: 'saga list' }),
    commandRoute(root, { path: '/sagas/$id', texts, title: 'saga', command: 'saga show <id>' }),
    commandRoute(root, { path: '/sagas/workflows', texts, title: 'workflows', command: 'saga workflows' }),
    commandRoute(root, {
      path: '/sagas/workflows/$name',
      texts,
      title: 'workflow',
      command: 'saga workflows <name>',
    }),
  ],
});
