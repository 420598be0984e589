import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { MailWarning } from 'lucide-react';
import type { Feature } from '../../components/feature.ts';
import { dlqTexts } from './texts/dlq-texts.ts';

/** Dead letters: what failed, why, and what to do. */
export const dlq: Feature = {
  segment: 'dlq',
  icon: MailWarning,
  key: 'd',
  home: '/dlq/messages',
  tabs: ['/dlq/messages'],
  texts: dlqTexts,
  routes: (root) => [
    createRoute({
      getParentRoute: () => root,
      path: '/dlq/messages',
      component: lazyRouteComponent(async () => import('./messages/messages-page.tsx'), 'MessagesPage'),
    }),
  ],
};
