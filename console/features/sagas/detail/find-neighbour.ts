import type { Bar } from '../../../lib/timeline/timeline.ts';

export type Direction = 'before' | 'after' | 'above' | 'below' | 'first' | 'last';

/** Where an arrow key leads: through the bars in their order, or to the nearest one of another row. */
export function findNeighbour(
  bars: readonly Bar[],
  from: Bar | undefined,
  direction: Direction,
): Bar | undefined {
  if (from === undefined || direction === 'first' || direction === 'last')
    return bars.at(direction === 'last' ? -1 : 0);
  const at = bars.findIndex(({ id }) => id === from.id);
  switch (direction) {
    case 'before':
      return bars[at - 1];
    case 'after':
      return bars[at + 1];
    case 'above':
    case 'below': {
      const sign = direction === 'above' ? -1 : 1;
      const beyond = bars.filter(({ y }) => (y - from.y) * sign > 0);
      const nearestY = Math.min(...beyond.map(({ y }) => Math.abs(y - from.y)));
      return beyond
        .filter(({ y }) => Math.abs(y - from.y) === nearestY)
        .toSorted((a, b) => Math.abs(a.x - from.x) - Math.abs(b.x - from.x))[0];
    }
  }
}
