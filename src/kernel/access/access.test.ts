import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { permissions, withViews, type Permission } from './permissions.ts';
import {
  includesGrant,
  intersect,
  isAllowed,
  mayAnywhere,
  mayEverywhere,
  namesAllowed,
  type Grant,
} from './principal.ts';
import { dimensions, isWithin, passes, type Scope } from './scope.ts';

const names = fc.constantFrom('', 'a', 'b', 'ab', 'ba', 'aab', 'a.b', 'abab');
const globs = fc
  .array(fc.constantFrom('a', 'b', '.', '*'), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''));
const someGlobs = fc.array(globs, { maxLength: 2 });
const scopes: fc.Arbitrary<Scope> = fc.record({ topics: someGlobs, queues: someGlobs }, { requiredKeys: [] });
const few = permissions.slice(0, 4);
const grants: fc.Arbitrary<Grant> = fc.record({
  role: fc.constantFrom('x', 'y'),
  permissions: fc.subarray([...few]).map((some) => new Set(some)),
  scopes: fc.array(scopes, { maxLength: 2 }),
});
const grantLists = fc.array(grants, { maxLength: 3 });
const permission = fc.constantFrom(...few);

test('a list shows the names for which the principal has the permission, and no other', () => {
  fc.assert(
    fc.property(grantLists, permission, fc.constantFrom(...dimensions), names, (given, asked, by, name) => {
      const principal = { grants: given };
      assert.equal(
        passes(namesAllowed(principal, asked, by), name),
        isAllowed(principal, asked, { [by]: [name] }),
      );
    }),
    { numRuns: 3000 },
  );
});

test('the intersection allows what both allow', () => {
  fc.assert(
    fc.property(
      grantLists,
      grantLists,
      permission,
      fc.record({ topics: fc.array(names, { maxLength: 2 }), queues: fc.array(names) }, { requiredKeys: [] }),
      (some, others, asked, resource) => {
        const isIn = (given: readonly Grant[]) => isAllowed({ grants: given }, asked, resource);
        assert.equal(isIn(intersect(some, others)), isIn(some) && isIn(others));
      },
    ),
    { numRuns: 3000 },
  );
});

test('a grant that is included allows nothing that the others do not allow', () => {
  fc.assert(
    fc.property(grantLists, grants, permission, names, (given, one, asked, name) => {
      fc.pre(includesGrant(given, one));
      for (const resource of [{}, { topics: [name] }, { queues: [name] }])
        if (isAllowed({ grants: [one] }, asked, resource))
          assert.ok(isAllowed({ grants: given }, asked, resource));
    }),
    { numRuns: 3000 },
  );
});

test('a scope within another one covers no name that the other does not cover', () => {
  fc.assert(
    fc.property(scopes, scopes, names, (inner, outer, name) => {
      fc.pre(isWithin(inner, outer));
      if (passes([[inner.topics ?? []]], name)) assert.ok(passes([[outer.topics ?? []]], name));
    }),
    { numRuns: 3000 },
  );
});

test('a narrowed grant gives nothing for what has no name, and nothing in another dimension', () => {
  const narrowed = { grants: [{ role: 'x', permissions: new Set(few), scopes: [{ topics: ['*'] }] }] };
  const [view] = few;
  assert.ok(view !== undefined);
  assert.ok(isAllowed(narrowed, view, { topics: ['orders'] }));
  assert.ok(!isAllowed(narrowed, view, {}));
  assert.ok(!isAllowed(narrowed, view, { queues: ['mail'] }));
  assert.ok(!isAllowed(narrowed, view, { topics: ['orders'], queues: ['mail'] }));
  assert.deepEqual(namesAllowed(narrowed, view, 'queues'), []);
  assert.ok(mayAnywhere(narrowed, view) && !mayEverywhere(narrowed, view));
});

test('every permission implies the one to view its resource', () => {
  for (const one of permissions) {
    const view = one.replace(/[^:]+$/, 'view') as Permission;
    assert.equal(withViews([one]).has(view), permissions.includes(view), one);
  }
});
