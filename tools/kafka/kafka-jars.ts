import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder, lockFolder } from '../cache-folder.ts';

const run = promisify(execFile);

const kafkaVersion = '4.3.0';
const oldestJava = 17;
const fetchTimeoutMs = 300_000;

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>redrive</groupId><artifactId>kafka-for-tests</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${kafkaVersion}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>${kafkaVersion}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`;

export type KafkaAvailability = Readonly<{ available: true } | { available: false; reason: string }>;

const cacheDir = (): string => cacheFolder(`kafka-${kafkaVersion}`);

const libsDir = (): string => join(cacheDir(), 'libs');

/** Says whether a real Kafka can run here, without fetching anything. */
export async function kafkaAvailability(): Promise<KafkaAvailability> {
  const java = await javaMajorVersion();
  if (java === undefined) return { available: false, reason: 'java is not installed' };
  if (java < oldestJava)
    return { available: false, reason: `java ${oldestJava} or newer is needed, found ${java}` };
  if (existsSync(libsDir())) return { available: true };
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

/**
 * The folder with the Kafka jars, fetched from Maven Central when the cache does not have them. The folder
 * appears by a rename, so it is complete whenever it exists; a lock keeps several processes from fetching at once.
 */
export async function fetchKafkaJars(): Promise<string> {
  const libs = libsDir();
  if (existsSync(libs)) return libs;
  await mkdir(cacheDir(), { recursive: true });
  const release = await lockFolder(join(cacheDir(), 'fetch.lock'), fetchTimeoutMs);
  try {
    if (!existsSync(libs)) await download(libs);
  } finally {
    await release();
  }
  return libs;
}

async function download(libs: string): Promise<void> {
  const partial = `${libs}.partial`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial);
  const project = join(cacheDir(), 'pom.xml');
  await writeFile(project, pom);
  const goal = ['dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${partial}`];
  await run('mvn', ['-q', '-B', '-f', project, ...goal], { timeout: fetchTimeoutMs });
  await rename(partial, libs);
}
