/** How the partner takes an order that it has not done yet. */
export type Mood =
  /** Does it, and says so. */
  | 'well'
  /** 503: not now, and nothing has happened. */
  | 'unavailable'
  /** Does it, and then says 500. */
  | 'failing'
  /** Does it, and says nothing at all. */
  | 'silent';

/** By how many it was asked to do so far: any 25 in a row meet each mood. */
export function moodAt(order: number): Mood {
  switch (order % 25) {
    case 5:
      return 'unavailable';
    case 12:
      return 'failing';
    case 18:
      return 'silent';
    default:
      return 'well';
  }
}
