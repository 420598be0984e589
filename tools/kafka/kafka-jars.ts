import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder, lockFolder } from '../cache-folder.ts';

const run = promisify(execFile);

export const kafkaVersion = '4.3.0';
const oldestJava = 17;
const fetchTimeoutMs = 300_000;

/** The broker, its tools, and the logger that `java-process.ts` configures. */
const brokerJars = [
  `org.apache.kafka:kafka_2.13:${kafkaVersion}`,
  `org.apache.kafka:kafka-tools:${kafkaVersion}`,
  'org.slf4j:slf4j-simple:1.7.36',
];

export type KafkaAvailability = Readonly<{ available: true } | { available: false; reason: string }>;

const libsOf = (name: string): string => join(cacheFolder(name), 'libs');

const brokerName = `kafka-${kafkaVersion}`;

/** Says whether a real Kafka can run here, without fetching anything. */
export async function kafkaAvailability(): Promise<KafkaAvailability> {
  const java = await javaMajorVersion();
  if (java === undefined) return { available: false, reason: 'java is not installed' };
  if (java < oldestJava)
    return { available: false, reason: `java ${oldestJava} or newer is needed, found ${java}` };
  if (existsSync(libsOf(brokerName))) return { available: true };
  try {
    await run('mvn', ['-v']);
    return { available: true };
  } catch {
    return { available: false, reason: 'mvn is not installed, and the Kafka jars are not in the cache' };
  }
}

async function javaMajorVersion(): Promise<number | undefined> {
  try {
    const { stderr } = await run('java', ['-version']);
    const major = /version "(\d+)/.exec(stderr)?.[1];
    return major === undefined ? undefined : Number(major);
  } catch {
    return undefined;
  }
}

/** The folder with the Kafka jars, fetched from Maven Central when the cache does not have them. */
export const fetchKafkaJars = (): Promise<string> => fetchJars(brokerName, brokerJars);

/**
 * Fetches `group:artifact:version` and what they need. The folder appears by a rename, so it is complete whenever it
 * exists; a lock keeps several processes from fetching at once.
 */
export async function fetchJars(name: string, artifacts: readonly string[]): Promise<string> {
  const libs = libsOf(name);
  if (existsSync(libs)) return libs;
  await mkdir(cacheFolder(name), { recursive: true });
  const release = await lockFolder(join(cacheFolder(name), 'fetch.lock'), fetchTimeoutMs);
  try {
    if (!existsSync(libs)) await download(libs, join(cacheFolder(name), 'pom.xml'), artifacts);
  } finally {
    await release();
  }
  return libs;
}

async function download(libs: string, project: string, artifacts: readonly string[]): Promise<void> {
  const partial = `${libs}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial);
  await writeFile(project, pomOf(artifacts));
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${partial}`];
  await run('mvn', ['-q', '-B', '-f', project, ...goal], { timeout: fetchTimeoutMs });
  await rename(partial, libs);
}

function pomOf(artifacts: readonly string[]): string {
  const dependencies = artifacts.map((artifact) => {
    const [group, name, version] = artifact.split(':');
    return `<dependency><groupId>${group}</groupId><artifactId>${name}</artifactId><version>${version}</version></dependency>`;
  });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>redrive</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    ${dependencies.join('\n    ')}
  </dependencies>
</project>
`;
}
