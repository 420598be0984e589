import assert from 'node:assert/strict';
import { test } from 'node:test';
import { permissions, type Permission } from './permissions.ts';
import { isAllowed, mayAnywhere, mayEverywhere } from './principal.ts';
import { createPolicy, grantsOfRole, lineageOf, type OwnRole } from './roles.ts';

const own = (role: Partial<OwnRole>): OwnRole => ({ extends: null, permissions: [], scope: null, ...role });
const has = (role: string, permission: Permission, roles: ReadonlyMap<string, OwnRole> = new Map()) =>
  mayAnywhere({ grants: grantsOfRole(role, roles) }, permission);

test('auditors see everything but payloads, and change nothing', () => {
  for (const permission of permissions)
    assert.equal(
      has('sys_auditor', permission),
      permission.endsWith(':view') && !permission.endsWith(':payloads:view'),
      permission,
    );
});

test('operators do not delete, discard, route or edit, nor approve redrives', () => {
  for (const permission of permissions.filter((one) => has('sys_operator', one)))
    assert.doesNotMatch(
      permission,
      /:(delete|discard|route|skip|supersede|approve|retry-all|manage|register)$/,
    );
  assert.ok(has('sys_operator', 'dlq:messages:retry') && has('sys_operator', 'dlq:payloads:view'));
});

test('admins may do everything', () => {
  for (const permission of permissions) assert.ok(has('sys_admin', permission), permission);
});

test('workers and producers see nothing', () => {
  for (const permission of permissions.filter((one) => one.endsWith(':view')))
    assert.ok(!has('worker', permission) && !has('producer', permission), permission);
});

test('a role has what it extends, narrowed, and its own permissions with the views that they imply', () => {
  const roles = new Map([
    ['payments', own({ extends: 'sys_operator', scope: { topics: ['payments.*'] } })],
    ['payments_eu', own({ extends: 'payments', scope: { topics: ['*.eu'] } })],
    ['mover', own({ permissions: ['dlq:messages:route'] })],
    ['feeder', own({ extends: 'producer', permissions: ['jobs:queues:pause'] })],
  ]);
  const may = (role: string, permission: Permission, topic: string) =>
    isAllowed({ grants: grantsOfRole(role, roles) }, permission, { topics: [topic] });
  assert.ok(may('payments', 'dlq:messages:retry', 'payments.us'));
  assert.ok(!may('payments', 'dlq:messages:retry', 'orders.eu'));
  assert.ok(!may('payments', 'dlq:messages:delete', 'payments.us'));
  assert.ok(may('payments_eu', 'dlq:messages:view', 'payments.eu'));
  assert.ok(!may('payments_eu', 'dlq:messages:view', 'payments.us'));
  assert.ok(has('mover', 'dlq:messages:view', roles));
  assert.ok(has('feeder', 'jobs:queues:pause', roles) && !has('feeder', 'jobs:queues:view', roles));
});

test('an unknown role and a circle of roles give nothing more', () => {
  const roles = new Map([
    ['a', own({ extends: 'b', permissions: ['jobs:jobs:view'] })],
    ['b', own({ extends: 'a' })],
    ['c', own({ extends: 'nothing' })],
    ['sys_admin', own({})],
  ]);
  assert.deepEqual(lineageOf('a', roles), ['a', 'b']);
  assert.ok(has('a', 'jobs:jobs:view', roles));
  assert.deepEqual(grantsOfRole('c', roles), []);
  assert.deepEqual(grantsOfRole('nothing', roles), []);
  assert.ok(has('sys_admin', 'dlq:messages:delete', roles), 'built-in roles cannot be replaced');
});

test('bindings give roles to subjects, narrowed if they say so', () => {
  const policy = createPolicy(new Map(), [
    { role: 'sys_operator', subjects: ['role:oncall', 'user:https://idp|7'], scope: null },
    { role: 'sys_admin', subjects: ['role:jobs'], scope: { queues: ['mail'] } },
  ]);
  const may = (subject: string, permission: Permission) =>
    mayEverywhere({ grants: policy.grantsFor(new Set([subject])) }, permission);
  assert.ok(may('role:oncall', 'jobs:jobs:requeue') && may('user:https://idp|7', 'jobs:jobs:requeue'));
  assert.ok(!may('role:jobs', 'jobs:jobs:requeue'));
  const jobs = { grants: policy.grantsFor(new Set(['role:jobs'])) };
  assert.ok(isAllowed(jobs, 'jobs:jobs:discard', { queues: ['mail'] }));
  assert.deepEqual(
    policy.grantsFor(new Set(['role:sys_admin'])),
    [],
    'default bindings hold only without others',
  );
});

test('without bindings the roles of the issuer with the names of the three built-in ones hold', () => {
  const policy = createPolicy(new Map(), []);
  const isBound = (subject: string) => policy.grantsFor(new Set([subject])).length > 0;
  assert.ok(isBound('role:sys_admin') && isBound('role:sys_operator') && isBound('role:sys_auditor'));
  assert.ok(!isBound('role:worker') && !isBound('role:producer') && !isBound('user:sys_admin'));
});
