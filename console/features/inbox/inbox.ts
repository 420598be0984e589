import { Inbox } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
import { inboxTexts as texts } from './texts/inbox-texts.ts';

/** Everything that needs attention, of all slices. */
export const inbox = defineFeature(texts, {
  segment: 'inbox',
  icon: Inbox,
  key: 'i',
  home: '/inbox',
  tabs: [],
  routes: (root) => [
    commandRoute(root, { path: '/inbox', texts, title: 'area', command: 'outbox list --needs-attention' }),
  ],
});
