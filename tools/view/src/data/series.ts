// A number over time, such as the length of a queue. It stays compressed: see tools/trace/view/series.h.
import { Cursor } from './blocks';

/** What a series did within each column of pixels. */
export interface Envelope {
  min: Float32Array;
  max: Float32Array;
  mean: Float32Array;
}

/** Stretches of one block. */
interface Block {
  count: number;
  begin: Float64Array; // one more than there are stretches: the last is where the block ends
  points: Uint8Array;
  value: Float32Array; // at its begin
  min: Float32Array;
  max: Float32Array;
  mean: Float32Array;
  at: Uint32Array; // its first byte
  bytes: Uint8Array;
  // The same of each `perGroup` stretches together, for views that show all of a long trace.
  groupMin: Float32Array;
  groupMax: Float32Array;
  groupMean: Float32Array;
}

const perGroup = 32;

type Visit = (begin: number, end: number, value: number) => void;

export class Series {
  private readonly blocks: Block[] = [];
  max = 0;

  /** Adds what a block has behind its head. */
  addBlock(cursor: Cursor, count: number, begin: number): void {
    const floats = () => new Float32Array(count);
    const block: Block = {
      count, begin: new Float64Array(count + 1), points: new Uint8Array(count), value: floats(), min: floats(),
      max: floats(), mean: floats(), at: new Uint32Array(count), bytes: cursor.bytes,
      groupMin: new Float32Array(0), groupMax: new Float32Array(0), groupMean: new Float32Array(0),
    };
    let at = 0;
    for (let i = 0; i < count; i++) {
      block.points[i] = cursor.next();
      block.value[i] = cursor.next();
      block.min[i] = cursor.next();
      block.max[i] = cursor.next();
      block.mean[i] = cursor.next() / 256;
      block.begin[i] = begin;
      begin += cursor.next();
      block.at[i] = at;
      at += cursor.next();
      if (block.max[i]! > this.max) this.max = block.max[i]!;
    }
    block.begin[count] = begin;
    // A copy: the heads need not stay.
    block.bytes = cursor.bytes.slice(cursor.at, cursor.at + at);
    addGroups(block);
    this.blocks.push(block);
  }

  /** The value at a time. */
  at(time: number): number {
    const block = this.blocks.find((b) => b.begin[b.count]! > time) ?? this.blocks.at(-1);
    if (!block) return 0;
    const i = stretchAt(block, time);
    let result = block.value[i]!;
    walk(block, i, (begin, _end, value) => {
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
      const b = begin > from ? begin : from;
      const e = end < to ? end : to;
      if (e < b) return;
      let x = Math.floor((b - from) / perPixel);
      const last = Math.min(width - 1, Math.floor((e - from) / perPixel));
      if (x === last) {
        mean[x]! += (average * (e - b)) / perPixel;
        if (low < min[x]!) min[x] = low;
        if (high > max[x]!) max[x] = high;
        return;
      }
      for (; x <= last; x++) {
        const covered = Math.min(e, from + (x + 1) * perPixel) - Math.max(b, from + x * perPixel);
        if (covered > 0) mean[x]! += (average * covered) / perPixel;
        if (low < min[x]!) min[x] = low;
        if (high > max[x]!) max[x] = high;
      }
    };
    const addPoint: Visit = (begin, end, value) => add(begin, end, value, value, value);
    for (const block of this.blocks) {
      if (block.begin[block.count]! < from) continue;
      if (block.begin[0]! > to) break;
      for (let i = stretchAt(block, from); i < block.count; i++) {
        const begin = block.begin[i]!;
        const next = Math.min(block.count, i + perGroup);
        if (i % perGroup === 0 && block.begin[next]! - begin < perPixel) {
          const group = i / perGroup;
          add(begin, block.begin[next]!, block.groupMin[group]!, block.groupMax[group]!, block.groupMean[group]!);
          i = next - 1;
          continue;
        }
        const end = block.begin[i + 1]!;
        if (begin > to) break;
        if (end - begin < perPixel) add(begin, end, block.min[i]!, block.max[i]!, block.mean[i]!);
        else walk(block, i, addPoint);
      }
    }
    return { min, max, mean };
  }
}

function addGroups(block: Block): void {
  const count = Math.ceil(block.count / perGroup);
  block.groupMin = new Float32Array(count).fill(Infinity);
  block.groupMax = new Float32Array(count).fill(-Infinity);
  block.groupMean = new Float32Array(count);
  for (let i = 0; i < block.count; i++) {
    const group = Math.floor(i / perGroup);
    block.groupMin[group] = Math.min(block.groupMin[group]!, block.min[i]!);
    block.groupMax[group] = Math.max(block.groupMax[group]!, block.max[i]!);
    const first = group * perGroup;
    const span = block.begin[Math.min(block.count, first + perGroup)]! - block.begin[first]!;
    if (span > 0) block.groupMean[group]! += (block.mean[i]! * (block.begin[i + 1]! - block.begin[i]!)) / span;
  }
}

/** The stretch of a block in which a time is. */
function stretchAt(block: Block, time: number): number {
  let low = 0;
  let high = block.count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (block.begin[middle + 1]! <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function walk(block: Block, stretch: number, visit: Visit): void {
  const cursor = new Cursor(block.bytes, block.at[stretch]!);
  let time = block.begin[stretch]!;
  let value = block.value[stretch]!;
  for (let i = 0; i < block.points[stretch]!; i++) {
    const next = time + cursor.next();
    const change = cursor.next();
    visit(time, next, value);
    value += change & 1 ? -(change + 1) / 2 : change / 2;
    time = next;
  }
  visit(time, block.begin[stretch + 1]!, value);
}
