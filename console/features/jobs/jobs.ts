import { ListTodo } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { lazyPage, redirectRoute } from '../../components/navigation/routes.ts';
import { jobsTexts as texts } from './texts/jobs-texts.ts';

/** Jobs, their queues and schedules. */
export const jobs = defineFeature(texts, {
  segment: 'jobs',
  icon: ListTodo,
  key: 'j',
  home: '/jobs/list',
  tabs: [
    { path: '/jobs/list', title: 'jobs' },
    { path: '/jobs/queues', title: 'queues' },
    { path: '/jobs/schedules', title: 'schedules' },
  ],
  routes: (root) => [
    redirectRoute(root, '/jobs', '/jobs/list'),
    lazyPage(root, '/jobs/list', async () => import('./list/jobs-page.tsx'), 'JobsPage'),
    lazyPage(root, '/jobs/list/$id', async () => import('./job/job-page.tsx'), 'JobPage'),
    lazyPage(root, '/jobs/requeue', async () => import('./requeue/requeue-page.tsx'), 'RequeuePage'),
    lazyPage(root, '/jobs/queues', async () => import('./queues/queues-page.tsx'), 'QueuesPage'),
    lazyPage(root, '/jobs/schedules', async () => import('./schedules/schedules-page.tsx'), 'SchedulesPage'),
  ],
});
