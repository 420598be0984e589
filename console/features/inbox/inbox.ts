import { Inbox } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage } from '../../components/navigation/routes.ts';
import { inboxTexts as texts } from './texts/inbox-texts.ts';

/** Everything that needs attention, of all slices. */
export const inbox = defineFeature(texts, {
  segment: 'inbox',
  icon: Inbox,
  key: 'i',
  home: '/inbox',
  tabs: [],
  routes: (root) => [lazyPage(root, '/inbox', async () => import('./list/inbox-page.tsx'), 'InboxPage')],
});
