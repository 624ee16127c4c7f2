// The rows of the timeline, from top to bottom: charts, Ps, Ms, goroutines.
import type { Series } from '../data/series';
import type { Trace } from '../data/trace';
import type { State } from '../state';
import { buildLevels, type Level, type Rows } from './mip';

export interface ChartBand {
  kind: 'chart';
  label: string;
  hint: string;
  y: number;
  height: number;
  series: { series: Series; color: 'runnable' | 'queue' | 'globalQueue'; name: string }[];
}

export interface LaneBand {
  kind: 'p' | 'm';
  label: string;
  y: number;
  height: number;
  number: number; // lane of the P, number of the M
  rows: Rows;
  ring: Series | null; // drawn above a P
}

export interface GoroutineBand {
  kind: 'g';
  label: string;
  y: number;
  height: number;
  row: number;
}

export interface TitleBand {
  kind: 'title';
  label: string;
  y: number;
  height: number;
}

export type Band = ChartBand | LaneBand | GoroutineBand | TitleBand;

// Lanes of series, as in tools/trace/view/records.h.
const runnable = 0;
const globalQueue = 1;
const allRings = 2;
const firstRing = 3;

/** Rows and levels of lanes, which are built when they are first drawn. */
export class LaneCache {
  private readonly levels = new Map<string, Level[]>();
  private readonly matching = new Map<string, Level[]>();
  private flags: Uint8Array | null = null;
  private threadRows: Rows[] | null = null;
  private threadCalls: Uint32Array[] | null = null;

  constructor(
    private readonly trace: Trace,
    private readonly colorOf: (slice: number) => number,
  ) {}

  levelsOf(band: LaneBand): Level[] {
    return this.build(this.levels, band, null);
  }

  matchingLevelsOf(band: LaneBand, flags: Uint8Array): Level[] {
    if (flags !== this.flags) this.matching.clear();
    this.flags = flags;
    return this.build(this.matching, band, flags);
  }

  private build(cache: Map<string, Level[]>, band: LaneBand, flags: Uint8Array | null): Level[] {
    const key = band.kind + band.number;
    let levels = cache.get(key);
    if (!levels) {
      const { slices, syscalls, span } = this.trace;
      const calls = band.kind === 'p' ? syscalls : null;
      levels = buildLevels(span, slices, band.rows, calls, this.syscallRows(band), this.colorOf, flags);
      cache.set(key, levels);
    }
    return levels;
  }

  syscallRows(band: LaneBand): Rows | null {
    if (band.kind !== 'p') return null;
    const { first } = this.trace.syscalls;
    return { from: first[band.number]!, to: first[band.number + 1]!, order: null };
  }

  heldRows(band: LaneBand): Rows {
    const { first } = this.trace.held;
    return { from: first[band.number]!, to: first[band.number + 1]!, order: null };
  }

  /** Slices by M and time: those of all Ps merged, and each put behind the others of its M. */
  rowsOfThreads(): Rows[] {
    if (this.threadRows) return this.threadRows;
    const { slices, threads } = this.trace;
    const first = new Uint32Array(threads.length + 1);
    for (let i = 0; i < slices.count; i++) first[slices.m[i]! + 1]!++;
    for (let m = 0; m < threads.length; m++) first[m + 1]! += first[m]!;
    const order = new Uint32Array(slices.count);
    const filled = first.slice();
    mergeLanes(slices.first, slices.start, (row) => {
      order[filled[slices.m[row]!]!++] = row;
    });
    this.threadRows = threads.map((_, m) => ({ from: first[m]!, to: first[m + 1]!, order }));
    return this.threadRows;
  }

  /** System calls without a P, by M. */
  callsOfThreads(): Uint32Array[] {
    if (this.threadCalls) return this.threadCalls;
    const lists: number[][] = this.trace.threads.map(() => []);
    const { calls } = this.trace;
    for (let i = 0; i < calls.count; i++) lists[calls.m[i]!]?.push(i);
    this.threadCalls = lists.map((list) => Uint32Array.from(list));
    return this.threadCalls;
  }
}

/** Visits the rows of all lanes in the order of their starts. */
function mergeLanes(first: Uint32Array, start: Float64Array, visit: (row: number) => void): void {
  const heap: number[] = []; // next rows, the earliest at the front
  const ends: number[] = [];
  for (let lane = 0; lane + 1 < first.length; lane++) {
    if (first[lane]! < first[lane + 1]!) {
      heap.push(first[lane]!);
      ends.push(first[lane + 1]!);
    }
  }
  const swap = (a: number, b: number) => {
    [heap[a], heap[b]] = [heap[b]!, heap[a]!];
    [ends[a], ends[b]] = [ends[b]!, ends[a]!];
  };
  const sift = (i: number) => {
    for (;;) {
      const left = 2 * i + 1;
      let least = i;
      if (left < heap.length && start[heap[left]!]! < start[heap[least]!]!) least = left;
      if (left + 1 < heap.length && start[heap[left + 1]!]! < start[heap[least]!]!) least = left + 1;
      if (least === i) return;
      swap(i, least);
      i = least;
    }
  };
  for (let i = heap.length >> 1; i >= 0; i--) sift(i);
  while (heap.length > 0) {
    visit(heap[0]!);
    if (++heap[0]! === ends[0]!) {
      swap(0, heap.length - 1);
      heap.pop();
      ends.pop();
    }
    sift(0);
  }
}

export const laneHeight = 20;
const gap = 4;
const ringHeight = 9;

export function layOut(trace: Trace, state: State, cache: LaneCache, height: number): { bands: Band[]; height: number } {
  const bands: Band[] = [];
  let y = 4;
  const add = (band: Band, space = gap) => {
    bands.push(band);
    y += band.height + space;
  };
  const runnableSeries = trace.series.get(runnable);
  if (runnableSeries) {
    add({
      kind: 'chart', label: 'runnable', hint: 'goroutines that are ready and wait for a P', y, height: 40,
      series: [{ series: runnableSeries, color: 'runnable', name: 'runnable' }],
    });
  }
  const rings = trace.series.get(allRings);
  const global = trace.series.get(globalQueue);
  if (rings || global) {
    add({
      kind: 'chart', label: 'queues', hint: 'in the run queues of all Ps (area), and in the global queue (line)', y,
      height: 34,
      series: [
        ...(rings ? [{ series: rings, color: 'queue' as const, name: 'rings of the Ps' }] : []),
        ...(global ? [{ series: global, color: 'globalQueue' as const, name: 'global queue' }] : []),
      ],
    });
  }
  y += 4;
  const hasRings = trace.procs.some((_, lane) => trace.series.has(firstRing + lane));
  // Few lanes may be higher than many.
  const space = (height - y) / Math.max(1, trace.procs.length);
  const tall = Math.round(Math.max(laneHeight, Math.min(44, space - gap - (hasRings ? ringHeight : 0) - 12)));
  for (const lane of trace.procOrder) {
    const rows = { from: trace.slices.first[lane]!, to: trace.slices.first[lane + 1]!, order: null };
    if (hasRings) y += ringHeight;
    add({
      kind: 'p', label: `P ${trace.procs[lane]}`, y, height: tall, number: lane, rows,
      ring: trace.series.get(firstRing + lane) ?? null,
    });
  }
  if (state.pinned.length > 0) {
    add({ kind: 'title', label: 'Goroutines', y, height: 18 });
    for (const row of state.pinned) {
      add({ kind: 'g', label: `G ${trace.goroutines.id[row]}`, y, height: laneHeight, row });
    }
  }
  if (state.threads) {
    add({ kind: 'title', label: 'Threads', y, height: 18 });
    const rows = cache.rowsOfThreads();
    const calls = cache.callsOfThreads();
    const shown = trace.threads.map((_, m) => m).filter((m) => rows[m]!.to > rows[m]!.from || calls[m]!.length > 0);
    for (const m of shown.sort((a, b) => trace.threads[a]! - trace.threads[b]!)) {
      const label = trace.threads[m]! < 0 ? 'no M' : `M ${trace.threads[m]}`;
      add({ kind: 'm', label, y, height: 16, number: m, rows: rows[m]!, ring: null });
    }
  }
  return { bands, height: y + 8 };
}
