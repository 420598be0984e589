import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { recordBytes } from '../record-bytes.ts';
import { chunkEnd } from './record-chunks.ts';

const limits = { records: 5, bytes: 1000 } as const;

const ofSize = (size: number) => ({ topic: 't', key: null, value: Buffer.alloc(size), headers: [] });

test('chunks keep all records in order within the limits, and only a record that is too large alone exceeds them', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1500 }), { maxLength: 50 }), (sizes) => {
      const records = sizes.map(ofSize);
      let from = 0;
      while (from < records.length) {
        const end = chunkEnd(records, from, limits);
        const chunk = records.slice(from, end);
        const bytes = chunk.reduce((sum, record) => sum + recordBytes(record), 0);
        assert.ok(chunk.length >= 1 && chunk.length <= limits.records);
        assert.ok(bytes <= limits.bytes || chunk.length === 1);
        const next = records[end];
        const isFull = !next || chunk.length === limits.records || bytes + recordBytes(next) > limits.bytes;
        assert.ok(isFull, 'a chunk takes what it can');
        from = end;
      }
    }),
  );
});

test('a record counts with its key and its headers', () => {
  const header = { key: Buffer.alloc(100), value: Buffer.alloc(200) };
  const record = {
    topic: 't',
    key: Buffer.alloc(50),
    value: null,
    headers: [header, { ...header, value: null }],
  };
  assert.ok(recordBytes(record) >= 450);
});
