// The life of one goroutine, put together from its slices.
import { EndKind, GoState, lowerBound, type Trace } from './trace';

export type State = 'running' | 'runnable' | 'syscall' | 'waiting' | 'paused';

export interface Segment {
  begin: number;
  end: number;
  state: State;
  slice: number; // of running; for others the slice before, or -1
  reason: string;
}

export interface Life {
  row: number;
  slices: number[]; // by time
  segments: Segment[];
  begin: number; // when it was created, or the trace began
  end: number; // when it ended, or the trace did
  totals: Map<string, number>; // by state, and for waiting also "waiting: reason"
  longestDelay: number; // a slice, or -1
}

/** Which state follows a slice that ended so. */
export function stateAfter(trace: Trace, end: number): State {
  switch (trace.endKind(end)) {
    case EndKind.stopped:
      return 'runnable';
    case EndKind.paused:
      return 'paused';
    case EndKind.lost:
      return 'syscall';
    default:
      return 'waiting';
  }
}

const firstStates: Record<number, State> = {
  [GoState.runnable]: 'runnable', [GoState.running]: 'running', [GoState.syscall]: 'syscall', [GoState.waiting]: 'waiting',
};

export function slicesOf(trace: Trace, row: number): number[] {
  const { g, start, count } = trace.slices;
  const found: number[] = [];
  for (let i = g.indexOf(row); i >= 0 && i < count; i = g.indexOf(row, i + 1)) found.push(i);
  return found.sort((a, b) => start[a]! - start[b]!);
}

export function lifeOf(trace: Trace, row: number): Life {
  const { goroutines, slices } = trace;
  const list = slicesOf(trace, row);
  const begin = goroutines.created[row]! > 0 ? goroutines.created[row]! - 1 : 0;
  const end = goroutines.ended[row]! > 0 ? goroutines.ended[row]! - 1 : trace.span;
  const life: Life = { row, slices: list, segments: [], begin, end, totals: new Map(), longestDelay: -1 };
  let at = begin;
  let state: State = goroutines.created[row]! > 0 ? 'runnable' : (firstStates[goroutines.state[row]!] ?? 'waiting');
  let reason = '';
  let before = -1;
  const put = (to: number, as: State, slice: number, why: string) => {
    if (to <= at && as !== 'running') return;
    life.segments.push({ begin: at, end: to, state: as, slice, reason: why });
    life.totals.set(as, (life.totals.get(as) ?? 0) + to - at);
    if (as === 'waiting') {
      const key = `waiting: ${why || 'not known'}`;
      life.totals.set(key, (life.totals.get(key) ?? 0) + to - at);
    }
    at = to;
  };
  for (const slice of list) {
    const start = slices.start[slice]!;
    const ready = slices.late[slice]! > 0 ? start - (slices.late[slice]! - 1) : start;
    // A paused goroutine can go on all the time until it runs.
    if (state === 'paused') put(start, 'paused', before, reason);
    else if (state !== 'runnable') put(ready, state, before, reason);
    put(start, 'runnable', before, '');
    putRun(trace, slice, put);
    const ending = slices.end[slice]!;
    state = stateAfter(trace, ending);
    reason = trace.endReason(ending);
    before = slice;
    if (slices.late[slice]! > 0 && (life.longestDelay < 0 || slices.late[slice]! > slices.late[life.longestDelay]!)) {
      life.longestDelay = slice;
    }
  }
  if (goroutines.ready[row]! > 0) {
    put(goroutines.ready[row]! - 1, state === 'runnable' ? 'runnable' : state, before, reason);
    state = 'runnable';
  }
  if (at < end) put(end, state, before, reason);
  return life;
}

/** A slice, with the system calls in it. */
function putRun(trace: Trace, slice: number, put: (to: number, as: State, slice: number, why: string) => void): void {
  const { syscalls } = trace;
  const lane = trace.laneOf(slice);
  const end = trace.endTime(slice);
  const last = syscalls.first[lane + 1]!;
  for (let i = lowerBound(syscalls.start, trace.slices.start[slice]!, syscalls.first[lane]!, last); i < last; i++) {
    if (syscalls.start[i]! >= end) break;
    put(syscalls.start[i]!, 'running', slice, '');
    put(syscalls.start[i]! + syscalls.length[i]!, 'syscall', slice, '');
  }
  put(end, 'running', slice, '');
}

/** Why a slice ended, in words. */
export function endInWords(trace: Trace, end: number): string {
  const reason = trace.endReason(end);
  switch (trace.endKind(end)) {
    case EndKind.blocked:
      return reason ? `blocked: ${reason}` : 'blocked';
    case EndKind.stopped:
      return reason || 'yielded';
    case EndKind.ended:
      return 'ended';
    case EndKind.lost:
      return 'lost its P in a system call';
    case EndKind.stillRunning:
      return 'still running at the end of the trace';
    case EndKind.paused:
      return 'paused';
    default:
      return 'not known';
  }
}
