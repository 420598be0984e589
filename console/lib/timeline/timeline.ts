/**
 * The picture of a saga: a pure function from its log to places on a plane. The log is drawn in the order in which
 * things were started, which cannot be read from its times, because they are of several clocks: actions by step, then
 * undos in reverse. Nothing is drawn before what came before it, whatever the clocks say.
 */
export type LoggedAttempt = Readonly<{
  id: string;
  step: number;
  op: 'EXECUTE' | 'COMPENSATE';
  attempt: number;
  startedAt: number;
  /** Null while it is open. */
  endedAt: number | null;
}>;

export type Bar = Readonly<{
  id: string;
  /** In which it ran, from 1. */
  order: number;
  x: number;
  width: number;
  /** Of its lane. */
  y: number;
  isOpen: boolean;
  durationMs: number;
}>;

/** A row of bars: the attempts at one action, or at one undo. */
export type Lane = Readonly<{ step: number; op: LoggedAttempt['op']; y: number; bars: readonly Bar[] }>;

/** A step with its lanes, the undo below the action. */
export type Band = Readonly<{ step: number; y: number; height: number; lanes: readonly Lane[] }>;

/** Time in which nothing happened, drawn as a break. */
export type Pause = Readonly<{ x: number; width: number; ms: number }>;

export type Timeline = Readonly<{
  width: number;
  height: number;
  bands: readonly Band[];
  /** All of them in the order in which they ran. */
  bars: readonly Bar[];
  pauses: readonly Pause[];
  /** Where the saga turned back: before its first undo. */
  turn: Readonly<{ x: number; at: number }> | null;
}>;

export type TimelineOptions = Readonly<{
  /** Of the definition; steps that only the log knows are added. */
  stepCount: number;
  now: number;
  /** What there is for the picture; a long log takes more. */
  width: number;
}>;

export const laneHeight = 28;
/** A pause longer than this is collapsed. */
export const collapsedMs = 3000;
const pauseWidth = 28;
/** With room for its number, unless there are many. */
const wideBar = 44;
const narrowBar = 24;
const manyBars = 40;
const gap = 6;
const padding = 8;
const turnWidth = 24;

/** An open bar has room to grow. */
const growth = 48;

type Placed = Readonly<{ row: LoggedAttempt; from: number; to: number; idleMs: number }>;

export function layTimeline(log: readonly LoggedAttempt[], options: TimelineOptions): Timeline {
  const placed = placeInTime(log, options.now);
  const { bars, pauses, turn, width } = placeOnLine(placed, options.width);
  const bands = stackBands(log, bars, options.stepCount);
  const last = bands.at(-1);
  return {
    width,
    height: last === undefined ? 0 : last.y + last.height,
    bands,
    bars: bands
      .flatMap(({ lanes }) => lanes.flatMap((lane) => lane.bars))
      .toSorted((a, b) => a.order - b.order),
    pauses,
    turn,
  };
}

/** Actions by step, then undos in reverse; attempts at one of them in their order. */
export function inRunOrder<Row extends Pick<LoggedAttempt, 'step' | 'op' | 'attempt'>>(
  log: readonly Row[],
): readonly Row[] {
  const rank = ({ step, op }: Row): number => (op === 'EXECUTE' ? step : -step);
  return log.toSorted(
    (a, b) =>
      Number(a.op === 'COMPENSATE') - Number(b.op === 'COMPENSATE') ||
      rank(a) - rank(b) ||
      a.attempt - b.attempt,
  );
}

/** Each begins when the one before it has ended, at the earliest. */
function placeInTime(log: readonly LoggedAttempt[], now: number): readonly Placed[] {
  let clock: number | null = null;
  return inRunOrder(log).map((row) => {
    const from: number = clock === null ? row.startedAt : Math.max(clock, row.startedAt);
    const to = Math.max(from, row.endedAt ?? now);
    const idleMs: number = clock === null ? 0 : from - clock;
    clock = to;
    return { row, from, to, idleMs };
  });
}

type OnLine = Omit<Bar, 'y'>;

function placeOnLine(
  placed: readonly Placed[],
  available: number,
): Readonly<{ bars: readonly OnLine[]; pauses: readonly Pause[]; turn: Timeline['turn']; width: number }> {
  const isTurned = placed.some(({ row }) => row.op === 'COMPENSATE');
  const isCollapsed = ({ idleMs }: Placed): boolean => idleMs > collapsedMs;
  const shown = (each: Placed): number => each.to - each.from + (isCollapsed(each) ? 0 : each.idleMs);
  const minBar = placed.length > manyBars ? narrowBar : wideBar;
  const fixed =
    2 * padding +
    placed.length * (minBar + gap) +
    placed.filter(isCollapsed).length * pauseWidth +
    (isTurned ? turnWidth : 0) +
    (placed.some(({ row }) => row.endedAt === null) ? growth : 0);
  const totalMs = placed.reduce((sum, each) => sum + shown(each), 0);
  const perMs = totalMs === 0 ? 0 : Math.max(0, available - fixed) / totalMs;
  const bars: OnLine[] = [];
  const pauses: Pause[] = [];
  let turn: Timeline['turn'] = null;
  let x = padding;
  placed.forEach((each, index) => {
    const { row, from, to, idleMs } = each;
    if (isCollapsed(each)) {
      pauses.push({ x, width: pauseWidth, ms: idleMs });
      x += pauseWidth;
    } else x += idleMs * perMs;
    if (row.op === 'COMPENSATE' && turn === null) {
      turn = { x: x + turnWidth / 2 - gap / 2, at: from };
      x += turnWidth;
    }
    const width = minBar + (to - from) * perMs;
    const isOpen = row.endedAt === null;
    bars.push({ id: row.id, order: index + 1, x, width, isOpen, durationMs: to - from });
    x += width + gap;
  });
  return { bars, pauses, turn, width: Math.max(available, fixed) };
}

function stackBands(
  log: readonly LoggedAttempt[],
  bars: readonly OnLine[],
  stepCount: number,
): readonly Band[] {
  const placeOf = new Map(bars.map((bar) => [bar.id, bar]));
  const rows = inRunOrder(log);
  const known = Math.max(stepCount, ...rows.map(({ step }) => step + 1), 0);
  const bands: Band[] = [];
  let y = 0;
  for (let step = 0; step < known; step += 1) {
    const ops = (['EXECUTE', 'COMPENSATE'] as const).filter(
      (op) => op === 'EXECUTE' || rows.some((row) => row.step === step && row.op === op),
    );
    const lanes = ops.map((op, index): Lane => {
      const laneY = y + index * laneHeight;
      const own = rows
        .filter((row) => row.step === step && row.op === op)
        .flatMap(({ id }) => {
          const place = placeOf.get(id);
          return place === undefined ? [] : [{ ...place, y: laneY }];
        });
      return { step, op, y: laneY, bars: own };
    });
    const height = lanes.length * laneHeight;
    bands.push({ step, y, height, lanes });
    y += height;
  }
  return bands;
}
