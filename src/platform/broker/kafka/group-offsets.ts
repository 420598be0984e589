import {
  findCoordinatorV4,
  findCoordinatorV5,
  findCoordinatorV6,
  listGroupsV4,
  listGroupsV5,
  offsetCommitV8,
  offsetCommitV9,
  offsetFetchV8,
  offsetFetchV9,
} from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { mirrorMark, type CommittedOffset, type MirroredPosition, type PartitionRef } from '../port.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import type { Link } from './connections.ts';
import { hasPassed, type Deadline } from './deadline.ts';
import { protocolCode, protocolMessage, responseOf, toAppError } from './kafka-errors.ts';
import { partitionKey } from './list-offsets.ts';

/** The coordinator moves, loads or is being created: worth a retry. */
const transient: ReadonlySet<string> = new Set([
  'COORDINATOR_LOAD_IN_PROGRESS',
  'COORDINATOR_NOT_AVAILABLE',
  'NOT_COORDINATOR',
  'UNSTABLE_OFFSET_COMMIT',
]);

/** A group's coordinator moves within a few hundred milliseconds. */
const retryDelayMs = 150;
const groupKind = 0;

/** Kafka accepts commits from non-members if the group is empty. */
const noMember = { generation: -1, memberId: '' } as const;

/** Each broker lists the groups that it coordinates. A share group has no committed offsets, and cannot be asked. */
export async function listGroups(cluster: Cluster, deadline: Deadline): Promise<readonly string[]> {
  const { nodes } = await cluster.describe([], deadline);
  const listed = await Promise.all(
    nodes.map((node) =>
      cluster.askNode({ node, purpose: 'control' }, deadline, 'groups', (link) => {
        const api = offered(link, [listGroupsV5.api, listGroupsV4.api]);
        return responseOf(api.async(link.connection, [], []));
      }),
    ),
  );
  for (const { errorCode } of listed) check(errorCode, '*');
  return listed.flatMap(({ groups }) =>
    groups.filter(({ groupType }) => groupType !== 'share').map(({ groupId }) => groupId),
  );
}

export async function committedOffsets(
  cluster: Cluster,
  group: string,
  partitions: readonly PartitionRef[],
  deadline: Deadline,
): Promise<readonly CommittedOffset[]> {
  if (partitions.length === 0) return [];
  const wanted = new Map(partitions.map((ref) => [partitionKey(ref), ref]));
  const topics = [...Map.groupBy(partitions, ({ topic }) => topic)].map(([name, refs]) => ({
    name,
    partitionIndexes: refs.map(({ partition }) => partition),
  }));
  return askCoordinator(cluster, group, deadline, async (link) => {
    const api = offered(link, [offsetFetchV9.api, offsetFetchV8.api]);
    const question = [{ groupId: group, memberId: null, memberEpoch: -1, topics }];
    const { groups } = await responseOf(api.async(link.connection, question, true));
    const committed: CommittedOffset[] = [];
    for (const { errorCode, topics: found } of groups) {
      check(errorCode, group);
      for (const { name, partitions: rows } of found)
        for (const { partitionIndex, committedOffset, metadata, errorCode: rowError } of rows) {
          check(rowError, group);
          const ref = wanted.get(partitionKey({ topic: name, partition: partitionIndex }));
          if (ref && committedOffset >= 0n)
            committed.push({ ...refOf(ref), offset: committedOffset, metadata: metadata ?? '' });
        }
    }
    return committed;
  });
}

/** Leaves out positions of topics that were deleted, or created again under the same name. */
export async function mirrorPositions(
  cluster: Cluster,
  group: string,
  positions: readonly MirroredPosition[],
  deadline: Deadline,
): Promise<void> {
  const known = await cluster.topics(
    positions.map(({ topic }) => topic),
    deadline,
  );
  const present = positions.filter(({ topic, topicId }) => known.get(topic)?.topicId === topicId);
  if (present.length === 0) return;
  const topics = [...Map.groupBy(present, ({ topic }) => topic)].map(([name, rows]) => ({
    name,
    partitions: rows.map(({ partition, offset, topicId }) => ({
      partitionIndex: partition,
      committedOffset: offset,
      committedLeaderEpoch: -1,
      committedMetadata: mirrorMark(topicId),
    })),
  }));
  await askCoordinator(cluster, group, deadline, async (link) => {
    const api = offered(link, [offsetCommitV9.api, offsetCommitV8.api]);
    const { generation, memberId } = noMember;
    const response = await responseOf(api.async(link.connection, group, generation, memberId, null, topics));
    for (const { name, partitions } of response.topics)
      for (const { errorCode } of partitions)
        if (protocolCode(errorCode) === 'UNKNOWN_TOPIC_OR_PARTITION') cluster.forget(name);
        else check(errorCode, group);
  });
}

async function askCoordinator<T>(
  cluster: Cluster,
  group: string,
  deadline: Deadline,
  question: (link: Link) => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      const node = await coordinatorOf(cluster, group, deadline);
      return await cluster.askNode({ node, purpose: 'control' }, deadline, `group ${group}`, question);
    } catch (error) {
      deadline.signal?.throwIfAborted();
      if (!(error instanceof TransientError)) throw toAppError(error);
      await sleep(retryDelayMs, deadline.signal);
      if (hasPassed(deadline)) throw groupError(error.message, group);
    }
  }
}

async function coordinatorOf(cluster: Cluster, group: string, deadline: Deadline): Promise<number> {
  const { coordinators } = await cluster.askAny(deadline, 'group coordinator', (link) => {
    const api = offered(link, [findCoordinatorV6.api, findCoordinatorV5.api, findCoordinatorV4.api]);
    return responseOf(api.async(link.connection, groupKind, [group]));
  });
  const [coordinator] = coordinators;
  if (!coordinator) throw new TransientError('COORDINATOR_NOT_AVAILABLE');
  check(coordinator.errorCode, group);
  return coordinator.nodeId;
}

class TransientError extends Error {}

function check(errorCode: number, group: string): void {
  const code = protocolCode(errorCode);
  if (transient.has(code)) throw new TransientError(code);
  if (errorCode !== 0) throw groupError(code, group);
}

const groupError = (code: string, group: string): AppError =>
  new AppError(
    'SYS_BROKER_GROUP_FAILED',
    'unavailable',
    `${code} for group ${group}: ${protocolMessage(code)}`,
  );

const refOf = ({ topic, topicId, partition }: PartitionRef): PartitionRef => ({ topic, topicId, partition });
