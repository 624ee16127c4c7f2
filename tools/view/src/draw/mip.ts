// A lane seen from afar: for each stretch of time, what part of it was busy, in which colour, and what part of that
// in system calls. Each level has half as many stretches as the one before. So a frame that shows all of a long trace
// takes no longer than one that shows a bit of it.
import type { Lanes } from '../data/trace';

export interface Level {
  width: number; // ns of a stretch
  busy: Uint8Array; // 255: all of it
  color: Uint8Array; // of its longest slice
  call: Uint8Array; // 255: all of it
}

/** Rows of a lane: `order[i]` for from <= i < to, or i itself. */
export interface Rows {
  from: number;
  to: number;
  order: Uint32Array | null;
}

const finest = 1 << 15;
const coarsest = 512;

function addTo(sums: Float32Array, begin: number, end: number, width: number): void {
  let k = Math.floor(begin / width);
  while (begin < end && k < sums.length) {
    const until = Math.min(end, (k + 1) * width);
    sums[k]! += until - begin;
    begin = until;
    k++;
  }
}

export function buildLevels(
  span: number, lanes: Lanes, rows: Rows, calls: Lanes | null, callRows: Rows | null,
  colorOf: (row: number) => number, flags: Uint8Array | null,
): Level[] {
  const busy = new Float32Array(finest);
  const best = new Float32Array(finest);
  const color = new Uint8Array(finest);
  const call = new Float32Array(finest);
  const width = span / finest;
  const { start, length } = lanes;
  for (let i = rows.from; i < rows.to; i++) {
    const row = rows.order === null ? i : rows.order[i]!;
    if (flags !== null && flags[row] === 0) continue;
    const begin = start[row]!;
    const end = begin + length[row]!;
    const c = colorOf(row);
    let k = Math.floor(begin / width);
    for (let b = begin; k < finest; k++) {
      const part = Math.min(end, (k + 1) * width) - b;
      busy[k]! += part;
      if (part >= best[k]!) {
        best[k] = part;
        color[k] = c;
      }
      b += part;
      if (b >= end) break;
    }
  }
  if (calls !== null && callRows !== null) {
    for (let i = callRows.from; i < callRows.to; i++) {
      addTo(call, calls.start[i]!, calls.start[i]! + calls.length[i]!, width);
    }
  }
  const toByte = (sums: Float32Array) => {
    const bytes = new Uint8Array(finest);
    for (let k = 0; k < finest; k++) {
      // What is there at all must be seen.
      bytes[k] = sums[k]! > 0 ? Math.max(1, Math.min(255, Math.round((sums[k]! / width) * 255))) : 0;
    }
    return bytes;
  };
  const levels: Level[] = [{ width, busy: toByte(busy), color, call: toByte(call) }];
  for (let fine = levels[0]!; fine.busy.length > coarsest; ) {
    fine = halve(fine);
    levels.push(fine);
  }
  return levels;
}

function halve(fine: Level): Level {
  const count = fine.busy.length >> 1;
  const level: Level = {
    width: fine.width * 2, busy: new Uint8Array(count), color: new Uint8Array(count), call: new Uint8Array(count),
  };
  for (let i = 0; i < count; i++) {
    const a = 2 * i;
    level.busy[i] = (fine.busy[a]! + fine.busy[a + 1]! + 1) >> 1;
    level.call[i] = (fine.call[a]! + fine.call[a + 1]!) >> 1;
    level.color[i] = fine.busy[a]! >= fine.busy[a + 1]! ? fine.color[a]! : fine.color[a + 1]!;
  }
  return level;
}
