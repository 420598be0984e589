import type { TopicTrouble } from '../port.ts';
import type { Cluster, TopicView } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import { faultOf, protocolMessage } from './kafka-errors.ts';

const topicsPerRequest = 1000;
const missing = 'UNKNOWN_TOPIC_OR_PARTITION';
const denied = 'TOPIC_AUTHORIZATION_FAILED';

/** Topics that do not exist or that we may not write to. A topic without a leader is not one of them: that is temporary. */
export async function unwritableTopics(
  cluster: Cluster,
  topics: readonly string[],
  deadline: Deadline,
): Promise<ReadonlyMap<string, TopicTrouble>> {
  const troubles = new Map<string, TopicTrouble>();
  for (let from = 0; from < topics.length; from += topicsPerRequest) {
    const asked = topics.slice(from, from + topicsPerRequest);
    const { topics: views } = await cluster.describe(asked, deadline, true);
    for (const topic of asked) {
      const code = troubleWith(views.get(topic));
      if (code !== null)
        troubles.set(topic, {
          problem: code.endsWith('_AUTHORIZATION_FAILED') ? 'denied' : 'missing',
          code,
          message: protocolMessage(code),
        });
    }
  }
  return troubles;
}

function troubleWith(view: TopicView | undefined): string | null {
  if (view === undefined) return missing;
  if (view.code !== undefined) return faultOf(view.code) === 'topic' ? view.code : null;
  return view.mayWrite === false ? denied : null;
}
