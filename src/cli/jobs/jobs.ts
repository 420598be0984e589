import type { SliceCommands } from '../slice/add-slice.ts';
import { dead, facets, list, reveal, show } from './browse.ts';
import { cancel, discard, requeue } from './decide.ts';
import { enqueue } from './enqueue.ts';
import { pause, queues, resume } from './queues.ts';
import { schedules } from './schedules.ts';

export const jobsCommands: SliceCommands = {
  name: 'jobs',
  description: 'jobs and queues: enqueue, list, requeue, cancel, pause',
  examples: [
    'redrive jobs queues',
    'redrive jobs dead',
    "redrive jobs requeue --queue summarize --error 'timed out' --preview",
  ],
  groups: {
    Read: [queues, schedules, list, facets, dead, show, reveal],
    Change: [enqueue, requeue, discard, cancel, pause, resume],
  },
};
