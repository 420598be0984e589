import { loopbackTls } from '../../tests/support/loopback-tls.ts';

export type KafkaPorts = Readonly<{
  plaintext: number;
  sasl: number;
  ssl: number;
  saslSsl: number;
  controller: number;
}>;

/** The users of the SASL listeners. */
export const plainUser = { mechanism: 'PLAIN', username: 'app', password: 'app-secret' } as const;
export const scramUser = { mechanism: 'SCRAM-SHA-512', username: 'scram', password: 'scram-secret' } as const;

const pem = (text: string): string => text.trim().replaceAll('\n', '\\n');
const jaas = {
  plain: `org.apache.kafka.common.security.plain.PlainLoginModule required user_${plainUser.username}="${plainUser.password}";`,
  scram: 'org.apache.kafka.common.security.scram.ScramLoginModule required;',
  // Accepts tokens that nobody has signed: the test is about the protocol, not about an issuer.
  oauth: 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;',
};

/** One node that is broker and controller, small, with every right given unless an ACL says otherwise. */
export const serverProperties = (ports: KafkaPorts, dataDir: string): string => `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports.controller}
listeners=PLAINTEXT://127.0.0.1:${ports.plaintext},CONTROLLER://127.0.0.1:${ports.controller},SASL_PLAINTEXT://127.0.0.1:${ports.sasl},SSL://127.0.0.1:${ports.ssl},SASL_SSL://127.0.0.1:${ports.saslSsl}
advertised.listeners=PLAINTEXT://127.0.0.1:${ports.plaintext},SASL_PLAINTEXT://127.0.0.1:${ports.sasl},SSL://127.0.0.1:${ports.ssl},SASL_SSL://127.0.0.1:${ports.saslSsl}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config=${jaas.plain}
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=${jaas.scram}
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER
listener.name.sasl_ssl.plain.sasl.jaas.config=${jaas.plain}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=${jaas.scram}
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config=${jaas.oauth}
listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms=600000
listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms=2000
ssl.keystore.type=PEM
ssl.keystore.certificate.chain=${pem(loopbackTls.cert)}
ssl.keystore.key=${pem(loopbackTls.key)}
ssl.truststore.type=PEM
ssl.truststore.certificates=${pem(loopbackTls.cert)}
listener.name.ssl.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=(.*)$/tls-$1/
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
