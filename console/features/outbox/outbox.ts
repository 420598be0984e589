import { Send } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage, redirectRoute } from '../../components/navigation/routes.ts';
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
    lazyPage(root, '/outbox/orders', async () => import('./orders/orders-page.tsx'), 'OrdersPage'),
    lazyPage(root, '/outbox/orders/$id', async () => import('./orders/order-page.tsx'), 'OrderPage'),
    lazyPage(
      root,
      '/outbox/orders/$id/supersede',
      async () => import('./supersede/supersede-page.tsx'),
      'SupersedePage',
    ),
    lazyPage(
      root,
      '/outbox/destinations',
      async () => import('./destinations/destinations-page.tsx'),
      'DestinationsPage',
    ),
    lazyPage(root, '/outbox/ledger', async () => import('./ledger/ledger-page.tsx'), 'LedgerPage'),
  ],
});
