import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { MailWarning } from 'lucide-react';
import type { Feature } from '../../components/feature.ts';
import { useText } from '../../components/text/use-text.ts';
import { dlqTexts } from './texts/dlq-texts.ts';

/** Dead letters: what failed, why, and what to do. */
export const dlq: Feature = {
  segment: 'dlq',
  icon: MailWarning,
  key: 'd',
  home: '/dlq/messages',
  tabs: ['/dlq/messages'],
  useNames() {
    const t = useText(dlqTexts);
    return { area: t.area, tabs: [t.messages] };
  },
  routes: (root) => [
    createRoute({
      getParentRoute: () => root,
      path: '/dlq/messages',
      component: lazyRouteComponent(async () => import('./messages/messages-page.tsx'), 'MessagesPage'),
    }),
  ],
};
