import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { namesAllowed } from '../../../kernel/access/principal.ts';
import { passes, type NameFilter } from '../../../kernel/access/scope.ts';
import { compileGlobs } from '../../../kernel/glob/match-glob.ts';
import { namesFor } from '../../../platform/http/access/guard-access.ts';
import type { ItemScope } from '../../../platform/http/access/route-access.ts';
import type { Permission } from '../../../kernel/access/permissions.ts';
import { addActionRoute } from '../../../platform/http/action-route.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { apiRoot } from '../../../platform/http/slice-input.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import type { PolicyCommand, PolicyState } from '../../domain/retry-policy.ts';
import { dateOrNull } from '../../instant.ts';
import { timestamp, type Json } from '../../present.ts';
import { commandPolicy } from './command-policy.ts';
import { policyNotFound } from './policies-table.ts';
import * as schemas from './policy-schemas.ts';
import { getPolicy, listDefinitions, listPolicies, type StoredPolicy } from './read-policies.ts';

const root = `${apiRoot('dlq')}/policies`;

export function addPolicyRoutes(app: HttpApp, db: Database): void {
  app.get(
    root,
    {
      config: { access: { permission: 'dlq:redrives:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'listRetryPolicies',
        summary: 'List retry policies with their state',
        description:
          'Policies are configured in `dlq.auto_retry`; the first one that matches a message retries it. Policies that are not configured any more are last.',
        response: { 200: schemas.PolicyListSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const policies = (await listPolicies(db)).filter((policy) => isCovered(policy, names));
      return reply.send({ policies: policies.map(presentPolicy) });
    },
  );
  app.get(
    `${root}/:name`,
    {
      config: { access: { permission: 'dlq:redrives:view', scope: policyScope(db) } },
      schema: {
        operationId: 'getRetryPolicy',
        summary: 'Get one retry policy',
        description: 'Shows its definition, its state, and how its last round ended.',
        errors: [404],
        params: schemas.PolicyParams,
        response: { 200: schemas.PolicySchema },
      },
    },
    async (request, reply) => reply.send(presentPolicy(await getPolicy(db, request.params.name))),
  );
  addCommandRoute(app, db, {
    command: 'pause',
    permission: 'dlq:redrives:pause',
    summary: 'Pause a retry policy',
    description:
      'Pauses its running redrive as well: after the answer the policy sends nothing; messages in flight are settled.',
  });
  addCommandRoute(app, db, {
    command: 'resume',
    permission: 'dlq:redrives:start',
    summary: 'Resume a paused or disabled retry policy',
    description:
      'Resumes its paused redrive as well. A stopped one is cancelled, and the next rounds retry its messages.',
  });
}

/** The configured policies that match a topic, in their order; of a dead-letter topic none, as nothing can be retried there. */
export function createPolicyFinder(db: Queryable, isDeadLetterTopic: (topic: string) => boolean) {
  return async (names: NameFilter) => {
    const policies = (await listDefinitions(db))
      .filter((policy) => isCovered(policy, names))
      .map(({ name, state, definition }) => ({ name, state, matches: compileGlobs(definition.topics) }));
    return (topic: string): readonly Readonly<{ name: string; state: PolicyState }>[] =>
      isDeadLetterTopic(topic)
        ? []
        : policies.filter(({ matches }) => matches(topic)).map(({ name, state }) => ({ name, state }));
  };
}

/** A narrowed role covers a policy if it covers all topics that the patterns of the policy may match. */
function isCovered({ definition }: Pick<StoredPolicy, 'definition'>, names: NameFilter): boolean {
  return definition.topics.every((pattern) => passes(names, pattern));
}

function policyScope(db: Database): ItemScope {
  const nameOf = ({ params }: FastifyRequest): string => (params as Static<typeof schemas.PolicyParams>).name;
  return {
    by: 'topics',
    in: 'item',
    namesOf: async (request) => (await getPolicy(db, nameOf(request))).definition.topics,
    isCovered: async (request, permission) =>
      isCovered(await getPolicy(db, nameOf(request)), namesAllowed(request.principal, permission, 'topics')),
    notFound: (request) => policyNotFound(nameOf(request)),
  };
}

type CommandRoute = Readonly<{
  command: PolicyCommand;
  permission: Permission;
  summary: string;
  description: string;
}>;

function addCommandRoute(app: HttpApp, db: Database, { command, permission, ...about }: CommandRoute): void {
  addActionRoute(app, {
    ...about,
    access: { permission, scope: policyScope(db) },
    path: `${root}/:name/${command}`,
    operationId: `${command}RetryPolicy`,
    errors: [404, 409],
    params: schemas.PolicyParams,
    body: schemas.PolicyCommandBody,
    answer: schemas.PolicySchema,
    async act({ params: { name }, body: { reason }, by: { actor, act } }) {
      await commandPolicy(db, { name, command, actor, reason, act });
      return presentPolicy(await getPolicy(db, name));
    },
  });
}

function presentPolicy(policy: StoredPolicy): Json {
  const at = (ms: number | null): string | null => timestamp(dateOrNull(ms));
  return {
    name: policy.name,
    state: policy.state,
    state_reason: policy.stateReason,
    state_actor: policy.stateActor,
    state_at: at(policy.stateAtMs),
    configured: policy.isConfigured,
    ...policy.definition,
    waiting: policy.waiting,
    due: policy.due,
    next_attempt_at: at(policy.nextAttemptAtMs),
    redrive_id: policy.redriveId,
    last_redrive_id: policy.lastRedriveId,
    last_round_at: at(policy.roundAtMs),
    last_result: policy.lastResult,
    failures: policy.failures,
    not_before: at(policy.notBeforeMs),
  };
}
