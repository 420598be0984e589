import { expect, test } from 'vitest';
import { seenAs, type Vision } from '../../lib/colour/colour-vision.ts';
import { deltaE2000 } from '../../lib/colour/delta-e.ts';
import { contrast, readHex } from '../../lib/colour/srgb.ts';
import tokens from '../style/tokens.css?raw';

const themes = ['light', 'dark'] as const;
const surfaces = ['surface', 'surface-subtle', 'surface-hover', 'surface-selected'];
const statuses = ['attention', 'retry', 'working', 'undoing', 'done'].map((name) => `status-${name}`);

function colour(name: string, theme: (typeof themes)[number]) {
  const [, light = '', dark = ''] =
    new RegExp(`--${name}: (?:light-dark\\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6}))?`).exec(tokens) ?? [];
  if (light === '') throw new Error(`there is no colour ${name}`);
  return readHex(theme === 'dark' && dark !== '' ? dark : light);
}

test('the distance of colours is that of the published examples', () => {
  expect(deltaE2000(readHex('#ffffff'), readHex('#000000'))).toBeCloseTo(100, 2);
  expect(deltaE2000(readHex('#ff0000'), readHex('#00ff00'))).toBeCloseTo(86.61, 1);
});

test.each(themes)('text and states can be read on every surface (%s)', (theme) => {
  const needed = [
    ...[...statuses, 'status-quiet', 'text-third', 'primary'].map((name) => [name, 4.5] as const),
    ['text', 11] as const,
    ['text-second', 6] as const,
    ['border-control', 3] as const,
  ];
  for (const surface of surfaces) {
    for (const [name, least] of needed) {
      const found = contrast(colour(name, theme), colour(surface, theme));
      expect(found, `${name} on ${surface}`).toBeGreaterThanOrEqual(least);
    }
  }
  expect(contrast(colour('on-badge', theme), colour('badge-attention', theme))).toBeGreaterThan(4.5);
  expect(contrast(colour('on-primary', theme), colour('primary', theme))).toBeGreaterThan(4.5);
});

test.each(themes)('any two states differ, also for the colour-blind (%s)', (theme) => {
  const visions: readonly Vision[] = ['normal', 'protan', 'deutan', 'tritan'];
  for (const vision of visions) {
    statuses.forEach((one, i) => {
      for (const other of statuses.slice(i + 1)) {
        const [a, b] = [one, other].map((name) => seenAs(colour(name, theme), vision));
        expect(
          a !== undefined && b !== undefined ? deltaE2000(a, b) : 0,
          `${one} and ${other}, ${vision}`,
        ).toBeGreaterThanOrEqual(12.4);
      }
    });
  }
});
