import { Activity } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
import { systemTexts as texts } from './texts/system-texts.ts';

/** Readiness, replicas, ingest and accounting. */
export const system = defineFeature(texts, {
  segment: 'system',
  icon: Activity,
  key: 'y',
  home: '/system',
  tabs: [],
  routes: (root) => [commandRoute(root, { path: '/system', texts, title: 'area', command: 'doctor' })],
});
