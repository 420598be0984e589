import type { Check } from '../check.ts';
import type { Settings } from '../schema.ts';
import type { StoredLogin } from '../layers/secret.ts';
import { isLoopback } from '../formats/host-format.ts';
import { flawOfPair } from '../layers/tls-files.ts';

type Mechanism = Settings['kafka']['sasl']['mechanism'];
type Sasl = StoredLogin &
  (
    | Readonly<{ mechanism: Exclude<Mechanism, 'OAUTHBEARER'> }>
    | Readonly<{ mechanism: 'OAUTHBEARER'; tokenUrl: string; scope: string | undefined }>
  );

export type KafkaConfig = Omit<Settings['kafka'], 'enabled' | 'sasl' | 'tls'> &
  Readonly<{
    /** False: nothing is read and nothing is published. */
    enabled: boolean;
    /** Set where the security protocol asks for it. */
    sasl: Sasl | undefined;
    tls: Settings['kafka']['tls'] | undefined;
  }>;

export function resolveKafka(settings: Settings['kafka'], check: Check): KafkaConfig {
  const { brokers, local, securityProtocol } = settings;
  const enabled = settings.enabled ?? (local || brokers.length > 0);
  if (enabled && local && brokers.length > 0)
    check.report(['kafka.local', 'kafka.brokers'], 'the local broker and kafka.brokers exclude each other');
  if (enabled && !local && brokers.length === 0)
    check.report(['kafka.brokers', 'kafka.enabled'], 'is empty, but kafka.enabled is true');
  const usesTls = securityProtocol.endsWith('SSL');
  const usesSasl = securityProtocol.startsWith('SASL');
  if (usesTls) checkTls(settings.tls, check);
  else warnUnused('kafka.tls', securityProtocol, check);
  if (!usesSasl) warnUnused('kafka.sasl', securityProtocol, check);
  return {
    ...settings,
    enabled,
    tls: usesTls ? settings.tls : undefined,
    sasl: usesSasl ? resolveSasl(settings.sasl, check) : undefined,
  };
}

function resolveSasl(settings: Settings['kafka']['sasl'], check: Check): Sasl | undefined {
  const { mechanism, username, password, tokenUrl, scope } = settings;
  for (const key of ['username', 'password'] as const)
    if (settings[key] === undefined)
      check.report(
        [`kafka.sasl.${key}`, 'kafka.security_protocol'],
        'is missing, but the security protocol needs it',
      );
  if (mechanism === 'OAUTHBEARER') checkTokenUrl(tokenUrl, check);
  if (username === undefined || password === undefined) return undefined;
  const login = {
    user: username,
    userFile: check.given.get('kafka.sasl.username')?.file,
    password,
    passwordFile: check.given.get('kafka.sasl.password')?.file,
  };
  check.checkLogin('kafka.sasl.username', login);
  if (mechanism !== 'OAUTHBEARER') return { ...login, mechanism };
  return tokenUrl === undefined ? undefined : { ...login, mechanism, tokenUrl, scope };
}

function checkTokenUrl(tokenUrl: string | undefined, check: Check): void {
  if (tokenUrl === undefined)
    check.report(['kafka.sasl.token_url', 'kafka.sasl.mechanism'], 'is missing, but OAUTHBEARER needs it');
  else if (!isProtected(new URL(tokenUrl)))
    check.report(
      ['kafka.sasl.token_url'],
      'sends the client secret without TLS: use https://, or http:// on loopback only',
    );
}

function isProtected({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}

function checkTls({ ca, cert, key }: Settings['kafka']['tls'], check: Check): void {
  check.checkFile('kafka.tls.ca', ca);
  check.checkFile('kafka.tls.cert', cert);
  check.checkFile('kafka.tls.key', key);
  const flaw = flawOfPair({ ca, cert, key }, 'kafka.tls');
  if (flaw) check.report([`kafka.tls${flaw.at}`, 'kafka.security_protocol'], flaw.reason);
}

/** Not an error: the files of an agent are mounted whatever the protocol. */
function warnUnused(section: 'kafka.tls' | 'kafka.sasl', protocol: string, { given, warn }: Check): void {
  const unused = [...given.keys()].find(
    (path) => path.startsWith(`${section}.`) && !path.endsWith('.mechanism'),
  );
  if (unused !== undefined) warn(`${unused} is not used: kafka.security_protocol is ${protocol}`);
}
