import { MailWarning } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage, redirectRoute } from '../../components/navigation/routes.ts';
import { dlqTexts as texts } from './texts/dlq-texts.ts';

/** Dead letters: what failed, why, and what to do. */
export const dlq = defineFeature(texts, {
  segment: 'dlq',
  icon: MailWarning,
  key: 'd',
  home: '/dlq/groups',
  tabs: [
    { path: '/dlq/groups', title: 'groups' },
    { path: '/dlq/messages', title: 'messages' },
    { path: '/dlq/topics', title: 'topics' },
    { path: '/dlq/redrives', title: 'redrives' },
  ],
  routes: (root) => [
    redirectRoute(root, '/dlq', '/dlq/groups'),
    lazyPage(root, '/dlq/groups', async () => import('./groups/groups-page.tsx'), 'GroupsPage'),
    lazyPage(root, '/dlq/groups/$fingerprint', async () => import('./groups/group-page.tsx'), 'GroupPage'),
    lazyPage(root, '/dlq/messages', async () => import('./messages/messages-page.tsx'), 'MessagesPage'),
    lazyPage(root, '/dlq/messages/$id', async () => import('./messages/message-page.tsx'), 'MessagePage'),
    lazyPage(
      root,
      '/dlq/messages/$id/edit',
      async () => import('./messages/edit/edit-message-page.tsx'),
      'EditMessagePage',
    ),
    lazyPage(root, '/dlq/topics', async () => import('./topics/topics-page.tsx'), 'TopicsPage'),
    lazyPage(root, '/dlq/redrives', async () => import('./redrives/redrives-page.tsx'), 'RedrivesPage'),
    lazyPage(
      root,
      '/dlq/redrives/new',
      async () => import('./redrives/new-redrive-page.tsx'),
      'NewRedrivePage',
    ),
    lazyPage(root, '/dlq/redrives/$id', async () => import('./redrives/redrive-page.tsx'), 'RedrivePage'),
  ],
});
