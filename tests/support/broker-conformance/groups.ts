import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mirrorMark } from '../../../src/platform/broker/port.ts';
import {
  onlyPartition,
  partitionsOf,
  positionAt,
  record,
  soon,
  topicWith,
  type Promises,
} from './fixtures.ts';

export const groupPromises: Promises = {
  'knows no offsets of a group that never committed': async (broker) => {
    const topic = await topicWith(broker, 1);
    assert.deepEqual(await broker.committed(`group-${randomUUID()}`, await partitionsOf(broker, topic)), []);
  },

  'lists a group that has committed offsets': async (broker) => {
    const topic = await topicWith(broker, 1);
    const group = `group-${randomUUID()}`;
    assert.ok(!(await broker.groups()).includes(group));
    await broker.mirror(group, [positionAt(await onlyPartition(broker, topic), 0n)]);
    assert.ok((await broker.groups()).includes(group));
  },

  'mirrors positions to a group with a mark that carries the topic id': async (broker) => {
    const topic = await topicWith(broker, 2);
    const group = `group-${randomUUID()}`;
    await broker.publish([record(topic), record(topic)], soon);
    const infos = await partitionsOf(broker, topic);
    const [first] = infos;
    assert.ok(first);
    await broker.mirror(group, [positionAt(first, 1n)]);
    assert.deepEqual(await broker.committed(group, infos), [
      { ...positionAt(first, 1n), metadata: mirrorMark(first.topicId) },
    ]);
  },

  'does not mirror a position of a topic that is no longer this one': async (broker) => {
    const topic = await topicWith(broker, 1);
    const group = `group-${randomUUID()}`;
    const info = await onlyPartition(broker, topic);
    await broker.mirror(group, [{ ...positionAt(info, 1n), topicId: randomUUID() }]);
    assert.deepEqual(await broker.committed(group, [info]), []);
  },
};
