import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFilter } from '../../lib/filter/filter.ts';
import { toQuery } from '../../lib/filter/qualifiers.ts';
import { activityQualifiers } from './activity-qualifiers.ts';
import { describeObject } from './objects/describe-object.ts';
import { en } from './verbs/en.ts';
import { verbOf } from './verbs/verb-of.ts';

test('an act leads to the page of what it was about', () => {
  const linked = (resource: string) => describeObject(resource).link;
  expect(linked('dlq/messages/0197')).toEqual({ to: '/dlq/messages/0197' });
  expect(linked('dlq/redrives/0197')).toEqual({ to: '/dlq/redrives/0197' });
  expect(linked('dlq/topics/orders.v1')).toEqual({ to: '/dlq/topics', search: { topic: 'orders.v1' } });
  expect(linked('outbox/orders/0197')).toEqual({ to: '/outbox/orders/0197' });
  expect(linked('jobs/jobs/0197')).toEqual({ to: '/jobs/list/0197' });
  expect(linked('saga/sagas/0197')).toEqual({ to: '/sagas/0197' });
  expect(linked('saga/workflows/a/b')).toEqual({ to: '/sagas/workflows/a%2Fb' });
});

test('what has no page leads to all acts on it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'binary' }), (name) => {
      const resource = `access/keys/${name.replaceAll(/\s/g, '')}x`;
      const { link } = describeObject(resource);
      const query = toQuery(parseFilter(link.search?.['q'] ?? ''), activityQualifiers, 0);
      expect(query).toEqual({ isValid: true, parameters: [['resource', resource]] });
    }),
  );
});

test('an act on many says so, and an unknown resource stands for itself', () => {
  expect(describeObject('jobs/jobs')).toMatchObject({ kind: 'job', name: '' });
  expect(describeObject('__proto__/toString')).toMatchObject({ kind: 'other', name: '__proto__/toString' });
});

test('one permission for several acts has a verb for each, and an unknown action stands for itself', () => {
  const verb = (action: string, change: string | null = null) => verbOf(en, { action, change });
  expect(verb('jobs:queues:pause')).toBe('Paused');
  expect(verb('jobs:queues:pause', 'resume')).toBe('Resumed');
  expect(verb('jobs:queues:pause', 'something_new')).toBe('Paused');
  expect(verb('shop:carts:empty', 'x')).toBe('shop:carts:empty');
  expect(verb('toString')).toBe('toString');
});
