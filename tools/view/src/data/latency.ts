// How late goroutines ran after they were readied: a histogram with eight bars for each power of ten.
import type { Trace } from './trace';

export const barsPerDecade = 8;
const decades = 11; // up to 100 s

export interface Histogram {
  counts: Uint32Array;
  total: number;
  p50: number;
  p99: number;
  max: number;
  first: number; // the bars with anything in them
  last: number;
}

export function barOf(ns: number): number {
  if (ns < 1) return 0;
  return Math.min(decades * barsPerDecade - 1, Math.floor(Math.log10(ns) * barsPerDecade + 1e-9));
}

export function barFrom(bar: number): number {
  return bar === 0 ? 0 : 10 ** (bar / barsPerDecade);
}

/** Calls `visit` for each slice whose delay is known. */
function eachDelay(
  trace: Trace, flags: Uint8Array | null, from: number, to: number, visit: (slice: number, ns: number) => void,
): void {
  const { late, start, count } = trace.slices;
  for (let i = 0; i < count; i++) {
    if (late[i] === 0 || (flags !== null && flags[i] === 0)) continue;
    if (start[i]! < from || start[i]! > to) continue;
    visit(i, late[i]! - 1);
  }
}

export function latencyHistogram(trace: Trace, flags: Uint8Array | null, from: number, to: number): Histogram {
  const counts = new Uint32Array(decades * barsPerDecade);
  let total = 0;
  let max = 0;
  // A logarithm for each of millions of delays takes long; most delays are short, and their bars are looked up.
  const table = Uint8Array.from({ length: 1 << 16 }, (_, ns) => barOf(ns));
  eachDelay(trace, flags, from, to, (_, ns) => {
    counts[ns < table.length ? table[ns]! : barOf(ns)]!++;
    total++;
    if (ns > max) max = ns;
  });
  const quantile = (q: number) => {
    let seen = 0;
    for (let bar = 0; bar < counts.length; bar++) {
      seen += counts[bar]!;
      if (seen >= q * total && counts[bar]! > 0) return Math.min(max, barFrom(bar + 0.5));
    }
    return 0;
  };
  let first = counts.findIndex((n) => n > 0);
  let last = counts.findLastIndex((n) => n > 0);
  if (first < 0) first = last = 0;
  return { counts, total, p50: quantile(0.5), p99: quantile(0.99), max, first, last };
}

/** The slices of one bar, the latest to run first, at most `limit`. */
export function slicesOfBar(
  trace: Trace, flags: Uint8Array | null, from: number, to: number, bar: number, limit: number,
): number[] {
  const found: number[] = [];
  const { late } = trace.slices;
  const longer = (a: number, b: number) => late[b]! - late[a]!;
  const low = barFrom(bar) - 1;
  const high = barFrom(bar + 1) + 1;
  eachDelay(trace, flags, from, to, (i, ns) => {
    if (ns < low || ns > high || barOf(ns) !== bar) return;
    found.push(i);
    if (found.length < limit * 8) return;
    found.sort(longer);
    found.length = limit;
  });
  return found.sort(longer).slice(0, limit);
}
