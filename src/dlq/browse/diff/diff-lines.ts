/**
 * A unified diff of two texts, bounded in work and size, because it runs in the server's event loop. The lines that both
 * texts begin and end with are found by comparing characters. The lines between them are compared with Myers' greedy
 * algorithm, which looks for the shortest edit; if that takes too many steps, they are shown as replaced as a whole.
 */
export type LineDiff = Readonly<{
  /** `@@` headers, and lines that begin with a blank, `-`, `+` or `\`. */
  lines: readonly string[];
  /** Some lines are cut or missing here. */
  isTruncated: boolean;
  /** The lines that differ were not compared with each other. */
  isCoarse: boolean;
}>;

export type DiffLimits = Readonly<{
  /** Comparisons of lines; a few nanoseconds each. */
  steps: number;
  /** Lines that are compared, of each text. */
  comparedLines: number;
  shownLines: number;
  shownCharacters: number;
  lineLength: number;
}>;

export const diffLimits: DiffLimits = {
  steps: 2_000_000,
  comparedLines: 50_000,
  shownLines: 2000,
  shownCharacters: 256 * 1024,
  lineLength: 2000,
};

const CONTEXT = 3;

export function diffLines(from: string, to: string, limits = diffLimits): LineDiff {
  if (from === to) return { lines: [], isTruncated: false, isCoarse: false };
  const prefix = commonPrefix(from, to);
  const suffix = commonSuffix(from, to, prefix);
  const removed = from.slice(prefix, from.length - suffix);
  const added = to.slice(prefix, to.length - suffix);
  const edits = editsOf(removed, added, limits);
  const before = lastLines(from, prefix);
  const after = edits.isCut ? [] : splitLines(from.slice(from.length - suffix), CONTEXT);
  const same = (line: string): Edit => ({ kind: ' ', line });
  const all = [...before.map(same), ...edits.list, ...after.map(same)];
  const first = countLines(from.slice(0, prefix)) - before.length + 1;
  const shown = showHunks(all, first, limits);
  return { ...shown, isCoarse: edits.isCoarse, isTruncated: shown.isTruncated || edits.isCut };
}

/** The length of the whole lines that both texts begin with. */
function commonPrefix(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return at === 0 ? 0 : a.lastIndexOf('\n', at - 1) + 1;
}

/** The length of the whole lines that both texts end with, after the common prefix. */
function commonSuffix(a: string, b: string, prefix: number): number {
  const most = Math.min(a.length, b.length) - prefix;
  let length = 0;
  while (length < most && a.charCodeAt(a.length - 1 - length) === b.charCodeAt(b.length - 1 - length))
    length += 1;
  const lineEnd = a.indexOf('\n', a.length - length);
  return lineEnd === -1 ? 0 : a.length - lineEnd - 1;
}

function lastLines(text: string, end: number): readonly string[] {
  let start = end;
  for (let count = 0; count < CONTEXT && start > 0; count += 1)
    start = start < 2 ? 0 : text.lastIndexOf('\n', start - 2) + 1;
  return splitLines(text.slice(start, end), CONTEXT);
}

/** At most `limit` lines, each with its line end. */
function splitLines(text: string, limit: number): readonly string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length && lines.length < limit;) {
    const end = text.indexOf('\n', at);
    const next = end === -1 ? text.length : end + 1;
    lines.push(text.slice(at, next));
    at = next;
  }
  return lines;
}

function countLines(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count += 1) {
    const end = text.indexOf('\n', at);
    at = end === -1 ? text.length : end + 1;
  }
  return count;
}

type Edit = Readonly<{ kind: ' ' | '-' | '+'; line: string }>;

/** `isCut`: later lines are missing in the list. */
type Edits = Readonly<{ list: readonly Edit[]; isCoarse: boolean; isCut: boolean }>;

function editsOf(removed: string, added: string, limits: DiffLimits): Edits {
  const [old, fresh] = [removed, added].map((text) => splitLines(text, limits.comparedLines + 1));
  if (old === undefined || fresh === undefined) throw new Error('two texts are compared');
  const isCut = Math.max(old.length, fresh.length) > limits.comparedLines;
  const list = isCut ? null : shortestEdit(old, fresh, limits.steps);
  if (list !== null) return { list, isCoarse: false, isCut };
  const some = Math.ceil(limits.shownLines / 2);
  const replaced = [
    ...old.slice(0, some).map((line): Edit => ({ kind: '-', line })),
    ...fresh.slice(0, some).map((line): Edit => ({ kind: '+', line })),
  ];
  return { list: replaced, isCoarse: true, isCut: replaced.length < old.length + fresh.length };
}

/** Edits beyond this number take too much memory, and help nobody. */
const MAX_EDITS = 1000;

/**
 * After `d` edits, `reach[k]` is the farthest line of `old` on diagonal `k` (the line of `old` minus the line of `fresh`).
 * The reaches of every round are kept, to find the way back. Null if it takes too many steps.
 */
function shortestEdit(
  old: readonly string[],
  fresh: readonly string[],
  maxSteps: number,
): readonly Edit[] | null {
  const [a, b] = numberLines(old, fresh);
  const rounds: Int32Array[] = [];
  let reach = new Int32Array(3);
  let steps = 0;
  for (let d = 0; d <= Math.min(MAX_EDITS, a.length + b.length); d += 1) {
    const next = new Int32Array(2 * d + 3);
    for (let k = -d; k <= d; k += 2) {
      let x = startOf(reach, d, k);
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x += 1;
        steps += 1;
      }
      next[k + d + 1] = x;
      steps += 1;
      if (x >= a.length && x - k >= b.length) return wayBack(rounds, d, k, { old, fresh });
      if (steps > maxSteps) return null;
    }
    rounds.push(next);
    reach = next;
  }
  return null;
}

/** Equal lines get equal numbers. */
function numberLines(
  old: readonly string[],
  fresh: readonly string[],
): readonly [a: Int32Array, b: Int32Array] {
  const numbers = new Map<string, number>();
  const numberOf = (line: string): number => {
    const known = numbers.get(line);
    if (known !== undefined) return known;
    numbers.set(line, numbers.size);
    return numbers.size - 1;
  };
  return [Int32Array.from(old, numberOf), Int32Array.from(fresh, numberOf)];
}

/** Where round `d` begins on the diagonal: one line of `fresh` is added, or one of `old` removed. */
function startOf(before: Int32Array, d: number, k: number): number {
  if (d === 0) return 0;
  return isAdded(before, d, k) ? reachOn(before, d - 1, k + 1) : reachOn(before, d - 1, k - 1) + 1;
}

function isAdded(before: Int32Array, d: number, k: number): boolean {
  return k === -d || (k !== d && reachOn(before, d - 1, k - 1) < reachOn(before, d - 1, k + 1));
}

function reachOn(round: Int32Array, d: number, k: number): number {
  return round[k + d + 1] ?? 0;
}

type Texts = Readonly<{ old: readonly string[]; fresh: readonly string[] }>;

function wayBack(
  rounds: readonly Int32Array[],
  edits: number,
  diagonal: number,
  { old, fresh }: Texts,
): readonly Edit[] {
  const reversed: Edit[] = [];
  let k = diagonal;
  let x = old.length;
  for (let d = edits; d >= 0; d -= 1) {
    const before = rounds[d - 1];
    const start = before === undefined ? 0 : startOf(before, d, k);
    while (x > start) reversed.push({ kind: ' ', line: old[(x -= 1)] ?? '' });
    if (before === undefined) break;
    if (isAdded(before, d, k)) {
      reversed.push({ kind: '+', line: fresh[x - k - 1] ?? '' });
      k += 1;
    } else {
      reversed.push({ kind: '-', line: old[(x -= 1)] ?? '' });
      k -= 1;
    }
  }
  return reversed.reverse();
}

/** The edits in groups with their context, as `diff -u` shows them. `first` is the line at which they begin. */
function showHunks(
  edits: readonly Edit[],
  first: number,
  limits: DiffLimits,
): Pick<LineDiff, 'lines' | 'isTruncated'> {
  const page = createPage(limits);
  let [oldLine, newLine] = [first, first];
  for (const { from, to } of hunksOf(edits)) {
    const hunk = edits.slice(from.at, to);
    oldLine += from.skipped;
    newLine += from.skipped;
    const oldCount = hunk.filter(({ kind }) => kind !== '+').length;
    const newCount = hunk.filter(({ kind }) => kind !== '-').length;
    page.add(`@@ -${rangeOf(oldLine, oldCount)} +${rangeOf(newLine, newCount)} @@`);
    for (const { kind, line } of hunk) {
      page.add(`${kind}${line.endsWith('\n') ? line.slice(0, -1) : line}`);
      if (!line.endsWith('\n')) page.add('\\ No newline at end of file');
    }
    oldLine += oldCount;
    newLine += newCount;
  }
  return page.result();
}

/** An empty range names the line before it. */
function rangeOf(line: number, count: number): string {
  return `${count === 0 ? line - 1 : line},${count}`;
}

/** `skipped`: lines without a change since the hunk before. */
type Hunk = Readonly<{ from: Readonly<{ at: number; skipped: number }>; to: number }>;

function hunksOf(edits: readonly Edit[]): readonly Hunk[] {
  const hunks: Hunk[] = [];
  let end = 0;
  for (let at = 0; at < edits.length; at += 1) {
    if (edits[at]?.kind === ' ') continue;
    const begin = Math.max(end, at - CONTEXT);
    let last = at;
    for (let next = at + 1; next < edits.length && next - last <= 2 * CONTEXT + 1; next += 1)
      if (edits[next]?.kind !== ' ') last = next;
    const to = Math.min(edits.length, last + CONTEXT + 1);
    hunks.push({ from: { at: begin, skipped: begin - end }, to });
    end = to;
    at = last;
  }
  return hunks;
}

function createPage({ shownLines, shownCharacters, lineLength }: DiffLimits) {
  const lines: string[] = [];
  let characters = 0;
  let isTruncated = false;
  const isFull = (): boolean => lines.length >= shownLines || characters >= shownCharacters;
  return {
    add(line: string): void {
      if (isFull()) {
        isTruncated = true;
        return;
      }
      const shown = line.length > lineLength ? `${line.slice(0, lineLength).toWellFormed()}…` : line;
      isTruncated ||= shown !== line;
      characters += shown.length;
      lines.push(shown);
    },
    result: () => ({ lines, isTruncated }),
  };
}
