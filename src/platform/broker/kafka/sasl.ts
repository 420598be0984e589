import { callbackify } from 'node:util';
import { AuthenticationError, saslPlain, saslScramSha, type SASLOptions } from '@platformatic/kafka';

export type KafkaLogin = Readonly<{ username: string; password: string }>;

/**
 * Functions are called for each new connection, and when a broker asks a connection to authenticate again, so that
 * changed credentials are used without a restart.
 */
export type SaslCredentials =
  | Readonly<{
      mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512';
      login: KafkaLogin | (() => Promise<KafkaLogin>);
    }>
  | Readonly<{ mechanism: 'OAUTHBEARER'; token: () => Promise<string> }>;

/** The Kafka client would ask for user and password one after the other, and could mix those of two pairs. */
export function saslOptions(credentials: SaslCredentials): SASLOptions {
  const { mechanism } = credentials;
  if (mechanism === 'OAUTHBEARER')
    return { mechanism, token: credentials.token, authBytesValidator: refusedToken };
  const { login } = credentials;
  const read = typeof login === 'function' ? login : () => Promise.resolve(login);
  return {
    mechanism,
    authenticate(...[, connection, ask, , , , callback]) {
      const authenticate = async () => {
        const { username, password } = await read().catch((cause: unknown) => {
          throw new AuthenticationError('the user and password of Kafka could not be read', {
            cause: asError(cause),
          });
        });
        if (mechanism === 'PLAIN') return saslPlain.authenticate(ask, connection, username, password);
        const algorithm = mechanism === 'SCRAM-SHA-256' ? 'SHA-256' : 'SHA-512';
        return saslScramSha.authenticate(ask, connection, algorithm, username, password);
      };
      callbackify(authenticate)(callback);
    },
  };
}

/** A broker refuses a token in an answer that is no error of the protocol (RFC 7628). */
const refusedToken: NonNullable<SASLOptions['authBytesValidator']> = (bytes, callback) => {
  if (bytes.length === 0) return callback(null, bytes);
  callback(new AuthenticationError(`the broker refused the token: ${bytes.toString('utf8').slice(0, 500)}`));
};

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
