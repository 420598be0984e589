/** The candidates that the word is most likely a slip of: those at the least distance, if it is at most `within`. */
export function nearest(
  word: string,
  candidates: Iterable<string>,
  within = Math.max(1, Math.floor(word.length / 3)),
): readonly string[] {
  const typed = normalize(word);
  let best: string[] = [];
  let least = within;
  for (const candidate of candidates) {
    const meant = normalize(candidate);
    if (Math.abs(meant.length - typed.length) > least) continue;
    const found = distance(typed, meant);
    if (found > least) continue;
    best = found < least ? [candidate] : [...best, candidate];
    least = found;
  }
  return best;
}

/** `maxRetries`, `max-retries` and `MAX_RETRIES` are all meant as `max_retries`. */
const normalize = (word: string): string => word.toLowerCase().replaceAll(/[_-]/g, '');

/** How many slips of the fingers lie between two words: a letter added, left out, replaced, or two swapped. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = at(last, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
          ? at(beforeLast, column - 2) + 1
          : Infinity;
      current.push(Math.min(replaced, swapped, at(last, column) + 1, at(current, column - 1) + 1));
    }
    beforeLast = last;
    last = current;
  }
  return at(last, b.length);
}

const at = (costs: readonly number[], index: number): number => costs[index] ?? Infinity;
