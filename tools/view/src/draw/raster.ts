// Draws a lane's slices into the pixels of an image: columns first, then rows.
//
// A slice that is wider than a pixel fills its columns; narrower ones add up in their column, whose height is then
// the part of the time that was busy. So the work of a frame is bounded by the pixels, and by the rows in view if
// they are fewer than a limit; beyond it the levels of mip.ts take their place.
import { lowerBound, type Lanes } from '../data/trace';
import type { Level, Rows } from './mip';
import type { Theme } from './palette';

const maxRows = 40_000; // that are looked at one by one, in a lane and a frame

export class LaneRaster {
  private readonly cover: Float32Array;
  private readonly dimmed: Float32Array;
  private readonly held: Float32Array;
  private readonly call: Float32Array;
  private readonly best: Float32Array;
  private readonly color: Uint8Array;
  private readonly edge: Uint8Array;
  readonly pixels: Uint32Array;
  readonly image: ImageData;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    const floats = () => new Float32Array(width);
    this.cover = floats();
    this.dimmed = floats();
    this.held = floats();
    this.call = floats();
    this.best = floats();
    this.color = new Uint8Array(width);
    this.edge = new Uint8Array(width);
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear(): void {
    this.cover.fill(0);
    this.dimmed.fill(0);
    this.held.fill(0);
    this.call.fill(0);
    this.best.fill(0);
    this.edge.fill(0);
  }

  /** Rows of a lane that are in view. */
  static visible(lanes: Lanes, rows: Rows, from: number, to: number): Rows {
    const { start } = lanes;
    if (rows.order === null) {
      const first = Math.max(rows.from, lowerBound(start, from, rows.from, rows.to) - 1);
      return { from: first, to: lowerBound(start, to, first, rows.to), order: null };
    }
    const { order } = rows;
    const bound = (time: number) => {
      let low = rows.from;
      let high = rows.to;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (start[order[middle]!]! < time) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return { from: Math.max(rows.from, bound(from) - 1), to: bound(to), order };
  }

  /** Slices that fit the search (all, if there is none) in their colours, the others dimmed. */
  addSlices(
    lanes: Lanes, rows: Rows, from: number, to: number, colorOf: (row: number) => number, flags: Uint8Array | null,
    levels: () => Level[], matching: () => Level[],
  ): void {
    const perPixel = (to - from) / this.width;
    const seen = LaneRaster.visible(lanes, rows, from, to);
    if (seen.to - seen.from > maxRows) {
      if (flags === null) return this.addLevel(levels(), from, perPixel, this.cover, true);
      this.addLevel(levels(), from, perPixel, this.dimmed, false);
      return this.addLevel(matching(), from, perPixel, this.cover, true);
    }
    const { start, length } = lanes;
    const { cover, dimmed, best, color, edge, width } = this;
    for (let i = seen.from; i < seen.to; i++) {
      const row = seen.order === null ? i : seen.order[i]!;
      const a = (start[row]! - from) / perPixel;
      const b = a + length[row]! / perPixel;
      if (b < 0) continue;
      const fits = flags === null || flags[row] === 1;
      const x = Math.max(0, Math.floor(a));
      const target = fits ? cover : dimmed;
      if (b - a < 1.5) {
        const column = Math.min(width - 1, Math.max(0, Math.floor(b) > x && b - Math.floor(b) > x + 1 - a ? x + 1 : x));
        target[column]! += Math.max(b - a, 0.02);
        if (fits && b - a > best[column]!) {
          best[column] = b - a;
          color[column] = colorOf(row);
        }
        continue;
      }
      const end = Math.min(width, Math.round(b));
      const begin = Math.max(0, Math.round(a));
      const c = fits ? colorOf(row) : 0;
      for (let k = begin; k < end; k++) {
        target[k] = 1;
        if (!fits) continue;
        best[k] = 2;
        color[k] = c;
      }
      if (fits && end - begin >= 3 && a >= 0) edge[begin] = 1;
    }
  }

  private addLevel(levels: Level[], from: number, perPixel: number, target: Float32Array, colored: boolean): void {
    let k = 0;
    while (k + 1 < levels.length && levels[k + 1]!.width <= perPixel) k++;
    const level = levels[k]!;
    for (let x = 0; x < this.width; x++) {
      const time = from + (x + 0.5) * perPixel;
      const i = Math.floor(time / level.width);
      if (i < 0 || i >= level.busy.length) continue;
      target[x] = level.busy[i]! / 255;
      if (!colored) continue;
      this.color[x] = level.color[i]!;
      this.call[x] = level.call[i]! / 255;
    }
  }

  /** System calls: their part of the columns is hatched. */
  addCalls(lanes: Lanes, rows: Rows, from: number, to: number): void {
    this.addCover(this.call, lanes, rows, from, to);
  }
  /** Those of one slice of a P. */
  addCallsOfSlice(lanes: Lanes, lane: number, begin: number, end: number, from: number, to: number): void {
    const perPixel = (to - from) / this.width;
    const last = lanes.first[lane + 1]!;
    for (let i = lowerBound(lanes.start, begin, lanes.first[lane]!, last); i < last && lanes.start[i]! < end; i++) {
      this.coverSpan(this.call, (lanes.start[i]! - from) / perPixel, lanes.length[i]! / perPixel);
    }
  }
  /** When a thread held the P. */
  addHeld(lanes: Lanes, rows: Rows, from: number, to: number): void {
    this.addCover(this.held, lanes, rows, from, to);
  }

  private addCover(target: Float32Array, lanes: Lanes, rows: Rows, from: number, to: number): void {
    const seen = LaneRaster.visible(lanes, rows, from, to);
    if (seen.to - seen.from > maxRows) return;
    const perPixel = (to - from) / this.width;
    for (let i = seen.from; i < seen.to; i++) {
      const row = seen.order === null ? i : seen.order[i]!;
      this.coverSpan(target, (lanes.start[row]! - from) / perPixel, lanes.length[row]! / perPixel);
    }
  }

  private coverSpan(target: Float32Array, a: number, length: number): void {
    const b = Math.min(this.width, a + length);
    a = Math.max(0, a);
    for (let x = Math.floor(a); x < b; x++) target[x]! += Math.min(b, x + 1) - Math.max(a, x);
  }

  /** Hatched time of a lane, such as that of a paused goroutine: a span in pixels. */
  hatchSpan(a: number, b: number, color: number): void {
    const end = Math.min(this.width, Math.max(Math.round(b), Math.round(a) + 1));
    for (let x = Math.max(0, Math.round(a)); x < end; x++) {
      this.cover[x] = 1;
      this.call[x] = 1;
      this.color[x] = color;
    }
  }

  /** The columns as rows of pixels. `phase` moves the stripes of hatches along with the time. */
  paint(theme: Theme, phase: number): void {
    const { width, height, pixels, cover, dimmed, held, call, color, edge } = this;
    const heldTop = height - Math.max(2, Math.round(height * 0.14));
    const stripe = Math.max(6, Math.round(height / 3));
    const half = stripe >> 1;
    for (let x = 0; x < width; x++) {
      const busy = Math.min(1, cover[x]!);
      const all = Math.min(1, busy + dimmed[x]!);
      const top = busy > 0 ? height - Math.max(2, Math.round(busy * height)) : height;
      const dimTop = all > busy ? height - Math.max(1, Math.round(all * height)) : height;
      const fill = edge[x] === 1 ? theme.edge[color[x]!]! : theme.fill[color[x]!]!;
      const hatched = call[x]! > 0.4 ? theme.hatch[color[x]!]! : fill;
      const back = theme.lane;
      const low = held[x]! > 0.25 ? theme.held : back;
      const shift = (x + phase) % stripe;
      for (let y = 0, at = x; y < height; y++, at += width) {
        if (y >= top) pixels[at] = hatched !== fill && (shift + y) % stripe < half ? hatched : fill;
        else if (y >= dimTop) pixels[at] = theme.dim;
        else pixels[at] = y >= heldTop ? low : back;
      }
    }
  }
}
