import { ListTodo } from 'lucide-react';
import { defineFeature } from '../../components/feature.ts';
import { commandRoute } from '../../components/navigation/command-page.tsx';
import { redirectRoute } from '../../components/navigation/routes.ts';
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
    commandRoute(root, { path: '/jobs/list', texts, title: 'jobs', command: 'jobs list' }),
    commandRoute(root, { path: '/jobs/list/$id', texts, title: 'job', command: 'jobs show <id>' }),
    commandRoute(root, { path: '/jobs/queues', texts, title: 'queues', command: 'jobs queues' }),
    commandRoute(root, { path: '/jobs/schedules', texts, title: 'schedules', command: 'jobs queues' }),
  ],
});
