import { History } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
import { activityTexts as texts } from './texts/activity-texts.ts';

/** What people and policies did. */
export const activity = defineFeature(texts, {
  segment: 'activity',
  icon: History,
  key: 'a',
  home: '/activity',
  tabs: [],
  routes: (root) => [
    commandRoute(root, { path: '/activity', texts, title: 'area', command: 'dlq redrive list' }),
  ],
});
