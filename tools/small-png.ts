import assert from 'node:assert/strict';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

type Pixels = Readonly<{ width: number; height: number; colourAt: (x: number, y: number) => number }>;

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const maxColours = 256;

/**
 * A browser's PNG with a palette, which takes about a third of the bytes. A screen has few colours; beyond the 256 most
 * frequent ones are only shades of smoothed letters, which take the nearest one.
 */
export function smallPng(png: Buffer): Buffer {
  const { width, height, colourAt } = readPng(png);
  const counts = new Map<number, number>();
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) counts.set(colourAt(x, y), (counts.get(colourAt(x, y)) ?? 0) + 1);
  const palette = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, maxColours)
    .map(([colour]) => colour);
  const indexes = new Map(palette.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!indexes.has(colour)) indexes.set(colour, nearest(palette, colour));

  // Each line begins with its filter: none.
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = indexes.get(colourAt(x, y)) ?? 0;

  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const colours = Buffer.from(palette.flatMap(channels));
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(lines, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** What browsers write: eight bits, red, green and blue with or without alpha, not interlaced. */
function readPng(png: Buffer): Pixels {
  const parts: Buffer[] = [];
  for (let at = signature.length; at < png.length; at += png.readUInt32BE(at) + 12)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const [depth, type, , , interlace] = png.subarray(24, 29);
  assert.deepEqual([depth, interlace], [8, 0]);
  assert.ok(type === 2 || type === 6);
  const step = type === 2 ? 3 : 4;
  const bytes = unfiltered(inflateSync(Buffer.concat(parts)), width * step, step);
  return { width, height, colourAt: (x, y) => bytes.readUIntBE((y * width + x) * step, 3) };
}

/** Each line begins with how it differs from its left and its upper neighbours. */
function unfiltered(data: Buffer, lineBytes: number, step: number): Buffer {
  const height = data.length / (lineBytes + 1);
  const bytes = Buffer.alloc(lineBytes * height);
  const at = (x: number, y: number): number => (x < 0 || y < 0 ? 0 : (bytes[y * lineBytes + x] ?? 0));
  for (let y = 0; y < height; y++) {
    const filter = data[y * (lineBytes + 1)] ?? 0;
    for (let x = 0; x < lineBytes; x++) {
      const [left, up, corner] = [at(x - step, y), at(x, y - 1), at(x - step, y - 1)];
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      bytes[y * lineBytes + x] = ((data[y * (lineBytes + 1) + 1 + x] ?? 0) + predicted) & 0xff;
    }
  }
  return bytes;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [toLeft, toUp, toCorner] = [left, up, corner].map((each) => Math.abs(guess - each)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function channels(colour: number): readonly number[] {
  return [colour >> 16, (colour >> 8) & 0xff, colour & 0xff];
}

function nearest(palette: readonly number[], colour: number): number {
  const wanted = channels(colour);
  const distances = palette.map((each) =>
    channels(each).reduce((sum, channel, i) => sum + (channel - (wanted[i] ?? 0)) ** 2, 0),
  );
  return distances.indexOf(Math.min(...distances));
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
