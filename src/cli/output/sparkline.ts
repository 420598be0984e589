const bars = '▁▂▃▄▅▆▇█';

/** One bar per number, as high as its share of the largest; a zero is a blank, and any other number is seen. */
export function sparkline(numbers: readonly number[]): string {
  const largest = Math.max(...numbers, 0);
  return numbers
    .map((number) => (number <= 0 ? ' ' : (bars[Math.ceil((number / largest) * bars.length) - 1] ?? ' ')))
    .join('');
}
