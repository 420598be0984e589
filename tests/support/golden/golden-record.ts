import { readFileSync } from 'node:fs';
import type { Header } from '../../../src/kernel/broker-record.ts';

/** A dead letter as a real producer wrote it, kept in the file of this name. */
export type GoldenRecord = Readonly<{ topic: string; headers: readonly Header[] }>;

type StoredRecord = Readonly<{
  topic: string;
  headers: readonly (Readonly<{ key: string; text: string }> | Readonly<{ key: string; hex: string }>)[];
}>;

export function readGoldenRecord(name: string): GoldenRecord {
  const file = new URL(`${name}.json`, import.meta.url);
  const stored = JSON.parse(readFileSync(file, 'utf8')) as StoredRecord;
  return {
    topic: stored.topic,
    headers: stored.headers.map((header) => ({
      key: Buffer.from(header.key),
      value: 'text' in header ? Buffer.from(header.text) : Buffer.from(header.hex, 'hex'),
    })),
  };
}
