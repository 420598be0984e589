import { Type, type TSchema } from 'typebox';
import { passes } from '../../kernel/access/scope.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import { scopeOfPath } from '../../platform/http/access/item-scope.ts';
import { byOf } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { toStored } from '../domain/workflow/workflow-hash.ts';
import { workflowNotFound } from '../saga-errors.ts';
import { registerWorkflow, type RegisterDeps } from './register-workflow.ts';
import { readWorkflow } from './workflow-yaml.ts';
import {
  countUses,
  findWorkflow,
  listDefinitions,
  listWorkflows,
  maxDefinitions,
  type DefinitionUse,
  type DefinitionUses,
  type RegisteredWorkflow,
} from './workflows-table.ts';

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
  addListRoute(app, deps);
  addDefinitionsRoute(app, deps);
}

function addListRoute(app: HttpApp, deps: RegisterDeps): void {
  app.get(
    root,
    {
      config: { access: { permission: 'saga:workflows:view', scope: { by: 'workflows', in: 'list' } } },
      schema: {
        operationId: 'listWorkflows',
        summary: 'List the registered workflows',
        description:
          'Shows the current definition of each workflow, and how many sagas of it are unfinished.',
        response: { 200: WorkflowListSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const listed = (await listWorkflows(deps.db)).filter(({ workflow: { name } }) => passes(names, name));
      const counted = await countUses(deps.db);
      const workflows = listed.map((registered) => ({
        ...presentWorkflow(registered),
        ...presentUse(counted, (use) => use.name === registered.workflow.name),
      }));
      return reply.send({ workflows });
    },
  );
}

function addDefinitionsRoute(app: HttpApp, deps: RegisterDeps): void {
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
      const definitions = await listDefinitions(deps.db, name);
      const counted = await countUses(deps.db);
      return reply.send({
        ...presentWorkflow(found),
        ...presentUse(counted, (use) => use.name === name),
        definition: toStored(found.workflow),
        definitions: definitions
          .slice(0, maxDefinitions)
          .map(({ hash, workflow: defined, registeredAt }) => ({
            hash,
            is_current: hash === found.hash,
            registered_at: formatInstant(registeredAt),
            ...presentUse(counted, (use) => use.hash === hash),
            definition: toStored(defined),
          })),
        has_more_definitions: definitions.length > maxDefinitions,
      });
    },
  );
}

function presentUse({ uses, isMinimum }: DefinitionUses, isMeant: (use: DefinitionUse) => boolean): object {
  const meant = uses.filter(isMeant);
  return {
    unfinished: meant.reduce((sum, use) => sum + use.unfinished, 0),
    needs_attention: meant.reduce((sum, use) => sum + use.needsAttention, 0),
    ...(isMinimum ? { counts_are_minimum: true } : {}),
  };
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

const use = {
  unfinished: Type.Integer({ minimum: 0, examples: [3], description: 'How many sagas have not ended.' }),
  needs_attention: Type.Integer({
    minimum: 0,
    examples: [1],
    description: 'How many of these need attention.',
  }),
  counts_are_minimum: Type.Optional(
    Type.Literal(true, {
      description: 'Only if there are more than 100 000 unfinished sagas: that many were counted.',
    }),
  ),
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
  workflows: Type.Array(Type.Object({ ...workflow, ...use }, { title: 'Workflow' })),
});

const WorkflowSchema: TSchema = Type.Object(
  {
    ...workflow,
    ...use,
    definition: Type.Unknown({ description: 'With all defaults.' }),
    definitions: Type.Array(
      Type.Object(
        {
          hash: workflow.hash,
          is_current: Type.Boolean(),
          registered_at: nullable(Timestamp),
          ...use,
          definition: Type.Unknown({ description: 'With all defaults.' }),
        },
        { title: 'WorkflowDefinition' },
      ),
      {
        description: 'The current one, then the newest, up to 50. Sagas keep the one that they started with.',
      },
    ),
    has_more_definitions: Type.Boolean(),
  },
  { title: 'DefinedWorkflow' },
);
