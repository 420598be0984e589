import type { HttpApp } from '../../platform/http/http-app.ts';
import { addActionRoutes, type ActionRouteDeps } from './action-routes.ts';
import { addSagaRoutes, type SagaRouteDeps } from './saga-routes.ts';
import { addWorkflowRoutes, type WorkflowRouteDeps } from './workflow-routes.ts';

export type SagaSliceRouteDeps = WorkflowRouteDeps & SagaRouteDeps & ActionRouteDeps;

export function addSagaSliceRoutes(app: HttpApp, deps: SagaSliceRouteDeps): void {
  addWorkflowRoutes(app, deps);
  addSagaRoutes(app, deps);
  addActionRoutes(app, deps);
}
