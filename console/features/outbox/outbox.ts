import { Send } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
import { redirectRoute } from '../../components/navigation/routes.ts';
import { outboxTexts as texts } from './texts/outbox-texts.ts';

/** Outbound requests, where they go, and the proof of one effect. */
export const outbox = defineFeature(texts, {
  segment: 'outbox',
  icon: Send,
  key: 'o',
  home: '/outbox/orders',
  tabs: [
    { path: '/outbox/orders', title: 'orders' },
    { path: '/outbox/destinations', title: 'destinations' },
    { path: '/outbox/ledger', title: 'ledger' },
  ],
  routes: (root) => [
    redirectRoute(root, '/outbox', '/outbox/orders'),
    commandRoute(root, { path: '/outbox/orders', texts, title: 'orders', command: 'outbox list' }),
    commandRoute(root, { path: '/outbox/orders/$id', texts, title: 'order', command: 'outbox show <id>' }),
    commandRoute(root, {
      path: '/outbox/destinations',
      texts,
      title: 'destinations',
      command: 'outbox destinations',
    }),
    commandRoute(root, { path: '/outbox/ledger', texts, title: 'ledger', command: 'outbox ledger <key>' }),
  ],
});
