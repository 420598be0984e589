import { Type, type TSchema } from 'typebox';
import { passes } from '../../kernel/access/scope.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import { scopeOfPath } from '../../platform/http/access/item-scope.ts';
import { byOf } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed } from '../../platform/http/schema-parts.ts';
import { toStored } from '../domain/workflow/workflow-hash.ts';
import { workflowNotFound } from '../saga-errors.ts';
import { registerWorkflow, type RegisterDeps } from './register-workflow.ts';
import { readWorkflow } from './workflow-yaml.ts';
import { findWorkflow, listWorkflows, type RegisteredWorkflow } from './workflows-table.ts';

const root = '/api/v1/workflows';

export function addWorkflowRoutes(app: HttpApp, deps: RegisterDeps): void {
  app.post(
    root,
    {
      config: { access: { permission: 'saga:workflows:register' } },
      schema: {
        operationId: 'registerWorkflow',
        summary: 'Register a workflow',
        description:
          'New sagas use it; running sagas keep the definition that they started with. Registering the same definition again changes nothing.',
        errors: [409],
        takesActor: true,
        body: NewWorkflowBody,
        response: { 201: RegisteredSchema },
      },
    },
    async (request, reply) => {
      const parsed = readWorkflow(request.body.workflow_yaml, deps.services, 'accepted');
      const { hash, workflow, warnings } = await registerWorkflow(deps, parsed, byOf(request, null));
      const { name, steps } = workflow;
      return reply.code(201).send({ name, step_count: steps.length, hash, warnings });
    },
  );

  app.get(
    root,
    {
      config: { access: { permission: 'saga:workflows:view', scope: { by: 'workflows', in: 'list' } } },
      schema: {
        operationId: 'listWorkflows',
        summary: 'List the registered workflows',
        description: 'Shows the current definition of each workflow.',
        response: { 200: WorkflowListSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const listed = (await listWorkflows(deps.db)).filter(({ workflow: { name } }) => passes(names, name));
      return reply.send({ workflows: listed.map(presentWorkflow) });
    },
  );

  app.get(
    `${root}/:name`,
    {
      config: {
        access: {
          permission: 'saga:workflows:view',
          scope: {
            ...scopeOfPath('workflows', 'name'),
            notFound: ({ params }) => workflowNotFound((params as { name: string }).name),
          },
        },
      },
      schema: {
        operationId: 'getWorkflow',
        summary: 'Get one workflow with its definition',
        description: 'The definition contains all defaults.',
        errors: [404],
        params: WorkflowParams,
        response: { 200: WorkflowSchema },
      },
    },
    async ({ params: { name } }, reply) => {
      const found = await findWorkflow(deps.db, name);
      if (found === null) throw workflowNotFound(name);
      return reply.send({ ...presentWorkflow(found), definition: toStored(found.workflow) });
    },
  );
}

function presentWorkflow({ hash, workflow: { name, steps } }: RegisteredWorkflow) {
  return { name, step_count: steps.length, step_names: steps.map((step) => step.name), hash };
}

const WorkflowParams = Type.Object({
  name: Type.String({ examples: ['buy'], minLength: 1, maxLength: 1000 }),
});

const exampleWorkflow = `name: buy
steps:
  - name: reserve
    service: inventory
    method: POST /reserve
    compensate: POST /release
`;

const NewWorkflowBody = Type.Object(
  {
    workflow_yaml: Type.String({ description: 'The workflow as YAML or JSON.', examples: [exampleWorkflow] }),
  },
  closed,
);

const workflow = {
  name: Type.String({ examples: ['buy'] }),
  step_count: Type.Integer({ examples: [1] }),
  step_names: Type.Array(Type.String({ examples: ['reserve'] })),
  hash: Type.String({
    examples: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
    description: 'Of the definition with all defaults. New sagas use this definition.',
  }),
};

const RegisteredSchema: TSchema = Type.Object({
  name: workflow.name,
  step_count: workflow.step_count,
  hash: workflow.hash,
  warnings: Type.Array(Type.String(), {
    examples: [[]],
    description: 'Calls that may fail: services that are not configured here or could not be checked.',
  }),
});

const WorkflowListSchema: TSchema = Type.Object({
  workflows: Type.Array(Type.Object(workflow, { title: 'Workflow' })),
});

const WorkflowSchema: TSchema = Type.Object(
  { ...workflow, definition: Type.Unknown({ description: 'With all defaults.' }) },
  { title: 'DefinedWorkflow' },
);
