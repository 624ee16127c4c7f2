// A number over time, such as the length of a queue. It stays compressed: see tools/trace/view/series.h.
import { Cursor } from './blocks';

interface Stretch {
  points: number;
  begin: number;
  value: number; // at its begin
  min: number;
  max: number;
  mean: number;
  end: number;
  bytes: Uint8Array;
}

/** What a series did within each column of pixels. */
export interface Envelope {
  min: Float32Array;
  max: Float32Array;
  mean: Float32Array;
}

export class Series {
  readonly stretches: Stretch[] = [];
  max = 0;

  /** Adds what a block has behind its head. */
  addBlock(cursor: Cursor, count: number): void {
    const sizes: number[] = [];
    const first = this.stretches.length;
    for (let i = 0; i < count; i++) {
      const next = () => cursor.next();
      const stretch: Stretch = {
        points: next(), begin: next(), value: next(), min: next(), max: next(), mean: next() / 256, end: next(),
        bytes: cursor.bytes,
      };
      sizes.push(next());
      this.max = Math.max(this.max, stretch.max);
      this.stretches.push(stretch);
    }
    sizes.forEach((size, i) => {
      this.stretches[first + i]!.bytes = cursor.bytes.subarray(cursor.at, cursor.at + size);
      cursor.at += size;
    });
  }

  get empty(): boolean {
    return this.stretches.length === 0;
  }

  private firstAt(time: number): number {
    let low = 0;
    let high = this.stretches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.stretches[middle]!.end <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The value at a time. */
  at(time: number): number {
    const stretch = this.stretches[Math.min(this.firstAt(time), this.stretches.length - 1)];
    if (!stretch) return 0;
    let result = stretch.value;
    walk(stretch, (begin, _end, value) => {
      if (begin <= time) result = value;
    });
    return result;
  }

  /** Minimum, maximum and mean in `width` columns of equal time. */
  envelope(from: number, to: number, width: number): Envelope {
    const min = new Float32Array(width).fill(Infinity);
    const max = new Float32Array(width).fill(-Infinity);
    const mean = new Float32Array(width);
    const perPixel = (to - from) / width;
    const add = (begin: number, end: number, low: number, high: number, average: number) => {
      const b = Math.max(begin, from);
      const e = Math.min(end, to);
      if (e < b) return;
      const last = Math.min(width - 1, Math.floor((e - from) / perPixel));
      for (let x = Math.max(0, Math.floor((b - from) / perPixel)); x <= last; x++) {
        const covered = Math.min(e, from + (x + 1) * perPixel) - Math.max(b, from + x * perPixel);
        mean[x]! += (average * Math.max(0, covered)) / perPixel;
        if (low < min[x]!) min[x] = low;
        if (high > max[x]!) max[x] = high;
      }
    };
    for (let i = this.firstAt(from); i < this.stretches.length; i++) {
      const stretch = this.stretches[i]!;
      if (stretch.begin > to) break;
      if (stretch.end - stretch.begin < perPixel) {
        add(stretch.begin, stretch.end, stretch.min, stretch.max, stretch.mean);
      } else {
        walk(stretch, (begin, end, value) => add(begin, end, value, value, value));
      }
    }
    return { min, max, mean };
  }
}

function walk(stretch: Stretch, visit: (begin: number, end: number, value: number) => void): void {
  const cursor = new Cursor(stretch.bytes);
  let time = stretch.begin;
  let value = stretch.value;
  for (let i = 0; i < stretch.points; i++) {
    const next = time + cursor.next();
    const change = cursor.next();
    visit(time, next, value);
    value += change & 1 ? -(change + 1) / 2 : change / 2;
    time = next;
  }
  visit(time, stretch.end, value);
}
