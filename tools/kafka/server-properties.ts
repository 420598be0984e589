export type KafkaPorts = Readonly<{ plaintext: number; sasl: number; controller: number }>;

/** The users of the SASL listener. */
export const plainUser = { mechanism: 'PLAIN', username: 'app', password: 'app-secret' } as const;
export const scramUser = { mechanism: 'SCRAM-SHA-512', username: 'scram', password: 'scram-secret' } as const;

/** One node that is broker and controller, small, with every right given unless an ACL says otherwise. */
export const serverProperties = (ports: KafkaPorts, dataDir: string): string => `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports.controller}
listeners=PLAINTEXT://127.0.0.1:${ports.plaintext},CONTROLLER://127.0.0.1:${ports.controller},SASL_PLAINTEXT://127.0.0.1:${ports.sasl}
advertised.listeners=PLAINTEXT://127.0.0.1:${ports.plaintext},SASL_PLAINTEXT://127.0.0.1:${ports.sasl}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_${plainUser.username}="${plainUser.password}";
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
log.dirs=${dataDir}
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=2
auto.create.topics.enable=false
`;
