import { isUtf8 } from 'node:buffer';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runJava } from './kafka/java-process.ts';
import { fetchJars, kafkaVersion } from './kafka/kafka-jars.ts';
import { startKafka } from './kafka/start-kafka.ts';

/**
 * Writes the golden records of dead letters that Kafka Connect, Kafka Streams and Spring Cloud Stream produce, by
 * running all three against a Kafka of its own. Needs Java and Maven.
 *
 *   node tools/write-golden-records.ts
 */
const binderVersion = '4.2.0';

const programs = [
  {
    file: 'DeadLetters.java',
    jars: `dead-letters-${kafkaVersion}`,
    artifacts: [
      `org.apache.kafka:connect-runtime:${kafkaVersion}`,
      `org.apache.kafka:kafka-streams:${kafkaVersion}`,
      'org.slf4j:slf4j-simple:1.7.36',
    ],
  },
  {
    file: 'SpringCloudStreamLetters.java',
    jars: `spring-cloud-stream-${binderVersion}`,
    artifacts: [`org.springframework.cloud:spring-cloud-stream-binder-kafka:${binderVersion}`],
  },
];

const golden = new URL('../tests/support/golden/', import.meta.url);

for (const { file, jars, artifacts } of programs) {
  const libs = await fetchJars(jars, artifacts);
  const kafka = await startKafka();
  try {
    const program = fileURLToPath(new URL(`kafka/java/${file}`, import.meta.url));
    const { stdout, stderr, code } = await runJava(libs, program, [kafka.brokers]);
    if (code !== 0) throw new Error(`${file} failed with code ${code}: ${stderr}`);
    const records = stdout.split('\n').filter((line) => /^[a-z-]+\t/.test(line));
    for (const record of records) await writeRecord(record.split('\t'));
  } finally {
    await kafka.stop();
  }
}

async function writeRecord([name = '', topic = '', key = '', value = '', ...headers]: readonly string[]) {
  const record = {
    writtenBy: writerOf(name),
    topic,
    key: textOf(key),
    value: textOf(value),
    headers: headers.map((header) => {
      const [headerName = '', bytes = ''] = header.split('=>');
      return { key: Buffer.from(headerName, 'base64').toString(), ...bytesOf(Buffer.from(bytes, 'base64')) };
    }),
  };
  await writeFile(new URL(`${name}.json`, golden), `${JSON.stringify(record, null, 2)}\n`);
  console.log(`wrote ${name}.json`);
}

function writerOf(name: string): string {
  if (name === 'spring-cloud-stream') return `spring-cloud-stream-binder-kafka ${binderVersion}`;
  return `${name.startsWith('kafka-connect') ? 'connect-runtime' : 'kafka-streams'} ${kafkaVersion}`;
}

function textOf(base64: string): string | null {
  return base64 === '-' ? null : Buffer.from(base64, 'base64').toString();
}

function bytesOf(bytes: Buffer): { text: string } | { hex: string } {
  return isUtf8(bytes) && !bytes.includes(0) ? { text: bytes.toString() } : { hex: bytes.toString('hex') };
}
