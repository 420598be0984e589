import { readdirSync, readFileSync } from 'node:fs';
import type { Header } from '../../../src/kernel/broker-record.ts';

/** A dead letter as a real producer wrote it, kept in the file of this name. */
export type GoldenRecord = Readonly<{
  topic: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
}>;

type StoredRecord = Readonly<{
  /** The program and its version; "by the …" if the record follows its documentation. */
  writtenBy: string;
  topic: string;
  key?: string | null;
  value?: string | null;
  headers: readonly (Readonly<{ key: string; text: string }> | Readonly<{ key: string; hex: string }>)[];
}>;

const folder = new URL('.', import.meta.url);

export const goldenNames: readonly string[] = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.slice(0, -'.json'.length))
  .toSorted();

export function readGoldenRecord(name: string): GoldenRecord {
  const stored = JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as StoredRecord;
  return {
    topic: stored.topic,
    key: bytesOf(stored.key, 'order-7c9e'),
    value: bytesOf(stored.value, '{"order":"7c9e6679"}'),
    headers: stored.headers.map((header) => ({
      key: Buffer.from(header.key),
      value: 'text' in header ? Buffer.from(header.text) : Buffer.from(header.hex, 'hex'),
    })),
  };
}

function bytesOf(text: string | null | undefined, missing: string): Buffer | null {
  return text === null ? null : Buffer.from(text ?? missing);
}
