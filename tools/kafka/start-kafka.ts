import { mkdtemp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Connection, metadataV12 } from '@platformatic/kafka';
import { runJava, startJava, type JavaResult, type JavaServer } from './java-process.ts';
import { fetchKafkaJars } from './kafka-jars.ts';
import { scramUser, serverProperties, type KafkaPorts } from './server-properties.ts';

export { kafkaAvailability, type KafkaAvailability } from './kafka-jars.ts';
export { plainUser, scramUser } from './server-properties.ts';

export type KafkaOptions = Readonly<{ dataDir?: string; ports?: KafkaPorts }>;

/** A real, single-node Kafka on loopback. */
export type RunningKafka = Readonly<{
  /** host:port without authentication. */
  brokers: string;
  /** host:port of the SASL listener. */
  saslBrokers: string;
  /** host:port of the listener that asks for a certificate of the client, and of SASL over TLS. */
  sslBrokers: string;
  saslSslBrokers: string;
  stop(): Promise<void>;
  /** SIGKILL: nothing is flushed, no client is told. */
  kill(): Promise<void>;
  /** On the same ports and data, after stop, kill or while running. */
  restart(): Promise<void>;
  /** Connections stay open, nothing answers once it has resolved. */
  pause(): Promise<void>;
  resume(): void;
  /** Runs one of Kafka's own tools by class name, or a `.java` file, with the Kafka jars. */
  javaTool(program: string, args: readonly string[], stdin?: string): Promise<JavaResult>;
}>;

const readyTimeoutMs = 60_000;

/** Runs Kafka's own tools against a broker that somebody else started. */
export async function javaTool(
  program: string,
  args: readonly string[],
  stdin?: string,
): Promise<JavaResult> {
  return runJava(await fetchKafkaJars(), program, args, stdin);
}

export async function startKafka(options: KafkaOptions = {}): Promise<RunningKafka> {
  const libs = await fetchKafkaJars();
  const ownsData = options.dataDir === undefined;
  const home = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'redrive-kafka-')));
  await mkdir(home, { recursive: true });
  const ports = options.ports ?? (await freePorts());
  const properties = join(home, 'server.properties');
  await writeFile(properties, serverProperties(ports, join(home, 'data')));
  await format(libs, properties);

  const start = async (): Promise<JavaServer> => {
    const log = join(home, 'server.log');
    const removeAfterwards = ownsData ? home : undefined;
    const started = startJava(libs, ['kafka.Kafka', properties], { log, removeAfterwards });
    await untilReady(started, ports.plaintext, log);
    return started;
  };
  let server = await start();

  return {
    brokers: `127.0.0.1:${ports.plaintext}`,
    saslBrokers: `127.0.0.1:${ports.sasl}`,
    sslBrokers: `127.0.0.1:${ports.ssl}`,
    saslSslBrokers: `127.0.0.1:${ports.saslSsl}`,
    stop: async () => {
      server.process.kill('SIGCONT');
      await server.end('SIGTERM');
      if (ownsData) await rm(home, { recursive: true, force: true });
    },
    kill: () => server.end('SIGKILL'),
    restart: async () => {
      await server.end('SIGTERM');
      server = await start();
    },
    pause: async () => {
      server.process.kill('SIGSTOP');
      await untilStopped(server.process.pid);
    },
    resume: () => void server.process.kill('SIGCONT'),
    javaTool: (program, args, stdin) => runJava(libs, program, args, stdin),
  };
}

async function format(libs: string, properties: string): Promise<void> {
  const storage = async (...args: string[]): Promise<string> => {
    const { stdout, stderr, code } = await runJava(libs, 'kafka.tools.StorageTool', args);
    if (code !== 0) throw new Error(`Kafka's storage tool failed with code ${code}: ${stderr || stdout}`);
    return stdout.trim();
  };
  const clusterId = await storage('random-uuid');
  const user = `${scramUser.mechanism}=[name=${scramUser.username},password=${scramUser.password}]`;
  await storage('format', '-t', clusterId, '-c', properties, '--ignore-formatted', '--add-scram', user);
}

/** Ready means that the broker answers and has registered itself, not only that the port is open. */
async function untilReady(server: JavaServer, port: number, logFile: string): Promise<void> {
  const giveUpAt = performance.now() + readyTimeoutMs;
  while (performance.now() < giveUpAt) {
    if (server.process.exitCode !== null || server.process.signalCode !== null) break;
    if (await answers(port)) return;
    await wait(50);
  }
  await server.end('SIGKILL');
  const log = await readFile(logFile, 'utf8').catch(() => '');
  throw new Error(`Kafka did not start:\n${log.split('\n').slice(-30).join('\n')}`);
}

async function answers(port: number): Promise<boolean> {
  const connection = new Connection('ready', { connectTimeout: 1000, requestTimeout: 2000 });
  connection.on('error', () => {});
  try {
    await connection.connect('127.0.0.1', port);
    const { brokers } = await metadataV12.api.async(connection, [], false, false);
    return brokers.length > 0;
  } catch {
    return false;
  } finally {
    connection.socket.destroy();
  }
}

/** On a busy machine threads go on for a moment after the signal was sent. */
async function untilStopped(pid: number | undefined): Promise<void> {
  const tasks = `/proc/${pid}/task`;
  const isStopped = async (thread: string): Promise<boolean> => {
    const stat = await readFile(join(tasks, thread, 'stat'), 'utf8').catch(() => ') T');
    return stat.slice(stat.lastIndexOf(')')).startsWith(') T');
  };
  const threads = (): Promise<readonly string[]> => readdir(tasks).catch(() => []);
  while ((await Promise.all((await threads()).map(isStopped))).includes(false)) await wait(5);
}

/** All at once, so that they differ. */
async function freePorts(): Promise<KafkaPorts> {
  const servers = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const [plaintext = 0, sasl = 0, ssl = 0, saslSsl = 0, controller = 0] = servers.map(
    (server) => (server.address() as AddressInfo).port,
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return { plaintext, sasl, ssl, saslSsl, controller };
}
