import type { HttpApp } from '../../platform/http/http-app.ts';
import { addActionRoutes, type ActionRouteDeps } from './action-routes.ts';
import { addJobRoutes, type JobRouteDeps } from './job-routes.ts';
import { addQueueRoutes, type QueueRouteDeps } from './queue-routes.ts';
import { addWorkerRoutes, type WorkerRouteDeps } from './worker-routes.ts';

export type JobsRouteDeps = JobRouteDeps & QueueRouteDeps & WorkerRouteDeps & ActionRouteDeps;

export function addJobsRoutes(app: HttpApp, deps: JobsRouteDeps): void {
  addJobRoutes(app, deps);
  addQueueRoutes(app, deps);
  addWorkerRoutes(app, deps);
  addActionRoutes(app, deps);
}
