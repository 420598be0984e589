/**
 * The topic in the address of an endpoint, as Wolverine (`kafka://topic/orders`) and the Kafka rider of MassTransit
 * (`loopback://localhost/kafka/orders`, `topic:orders`) write it; undefined for queues of other transports.
 */
export function topicOfKafkaAddress(address: string): string | undefined {
  const match = /^(?:topic:|kafka:\/\/topic\/|[a-z]+:\/\/[^/?#]*\/(?:[^/?#]*\/)?kafka\/)([^/?#]+)/.exec(
    address,
  );
  return match?.[1];
}

/** The queue of `orders@HOST`. */
export function topicOfQueue(queue: string): string | undefined {
  const name = queue.split('@', 1)[0];
  return name === '' ? undefined : name;
}
