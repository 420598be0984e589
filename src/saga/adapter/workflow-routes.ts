import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { KnownServices } from '../domain/parse-workflow.ts';
import { getWorkflow, registerWorkflow, type RegisterDeps } from '../usecase/register-workflow.ts';
import { presentDefinedWorkflow, presentRegistered, presentWorkflow } from './present-saga.ts';
import * as schemas from './schemas.ts';
import { readWorkflow } from './workflow-yaml.ts';

export type WorkflowRouteDeps = RegisterDeps & Readonly<{ services: KnownServices }>;

const root = '/api/v1/workflows';

export function addWorkflowRoutes(app: HttpApp, deps: WorkflowRouteDeps): void {
  app.post(
    root,
    {
      schema: {
        summary: 'Register a workflow: new sagas begin with it, those that run keep theirs',
        body: schemas.NewWorkflowBody,
        response: { 201: schemas.RegisteredSchema },
      },
    },
    async (request, reply) => {
      const parsed = readWorkflow(request.body.workflow_yaml, deps.services);
      const registered = await registerWorkflow(deps, parsed, actorOf(request));
      return reply.code(201).send(presentRegistered(registered));
    },
  );

  app.get(
    root,
    {
      schema: {
        summary: 'The workflows that sagas can be started of',
        response: { 200: schemas.WorkflowListSchema },
      },
    },
    async (_request, reply) => reply.send({ workflows: (await deps.workflows.list()).map(presentWorkflow) }),
  );

  app.get(
    `${root}/:name`,
    {
      schema: {
        summary: 'One workflow with its definition',
        params: schemas.WorkflowParams,
        response: { 200: schemas.WorkflowSchema },
      },
    },
    async ({ params }, reply) =>
      reply.send(presentDefinedWorkflow(await getWorkflow(deps.workflows, params.name))),
  );
}
