import type { Feature } from '../components/feature.ts';
import { activity } from '../features/activity/activity.ts';
import { dlq } from '../features/dlq/dlq.ts';
import { inbox } from '../features/inbox/inbox.ts';
import { jobs } from '../features/jobs/jobs.ts';
import { outbox } from '../features/outbox/outbox.ts';
import { sagas } from '../features/sagas/sagas.ts';
import { system } from '../features/system/system.ts';

/** In the order of the navigation. */
export const features: readonly Feature[] = [inbox, dlq, outbox, jobs, sagas, activity, system];

/** The feature that a path belongs to. */
export function featureOf(pathname: string): Feature | undefined {
  const [, segment] = pathname.split('/');
  return features.find((feature) => feature.segment === segment);
}
