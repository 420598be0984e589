import assert from 'node:assert/strict';
import { onlyPartition, partitionsOf, record, soon, topicWith, type Promises } from './fixtures.ts';

export const listingPromises: Promises = {
  'names its cluster, always the same': async (broker) => {
    const id = await broker.clusterId();
    assert.notEqual(id, '');
    assert.equal(await broker.clusterId(), id);
    assert.equal((await broker.partitions(() => false)).clusterId, id);
  },

  'lists the partitions of the topics that match, with their ends': async (broker) => {
    const topic = await topicWith(broker, 3);
    await topicWith(broker, 1);
    const empty = await partitionsOf(broker, topic);
    assert.deepEqual(
      empty.map(({ partition, start, end }) => [partition, start, end]),
      [0, 1, 2].map((partition) => [partition, 0n, 0n]),
    );
    assert.equal(new Set(empty.map(({ topicId }) => topicId)).size, 1);
    await broker.publish([record(topic), record(topic), record(topic)], soon);
    assert.deepEqual(
      (await partitionsOf(broker, topic)).map(({ end }) => end),
      [1n, 1n, 1n],
    );
  },

  'leaves an existing topic as it is when it is created again': async (broker) => {
    const topic = await topicWith(broker, 2);
    const before = await partitionsOf(broker, topic);
    await broker.createTopic(topic, 5);
    assert.deepEqual(await partitionsOf(broker, topic), before);
  },

  'gives a topic that was deleted and made again another id': async (broker) => {
    const topic = await topicWith(broker, 1);
    const { topicId } = await onlyPartition(broker, topic);
    await broker.deleteTopic(topic);
    assert.deepEqual(await partitionsOf(broker, topic), []);
    await broker.createTopic(topic, 1);
    assert.notEqual((await onlyPartition(broker, topic)).topicId, topicId);
  },
};
