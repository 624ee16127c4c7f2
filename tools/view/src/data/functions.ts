// Where the time went, by function.
import type { Trace } from './trace';

export interface FunctionTimes {
  function: number; // a string; 0: not known
  goroutines: number;
  slices: number;
  running: number; // ns, with system calls that kept their P
  runnable: number;
  longestDelay: number; // ns
}

export function timesByFunction(trace: Trace): FunctionTimes[] {
  const times: FunctionTimes[] = trace.strings.map((_, i) => ({
    function: i, goroutines: 0, slices: 0, running: 0, runnable: 0, longestDelay: 0,
  }));
  const { goroutines, slices } = trace;
  for (let row = 0; row < goroutines.count; row++) times[goroutines.function[row]!]!.goroutines++;
  for (let i = 0; i < slices.count; i++) {
    const t = times[goroutines.function[slices.g[i]!]!]!;
    t.slices++;
    t.running += slices.length[i]!;
    const late = slices.late[i]! - 1;
    if (late <= 0) continue;
    t.runnable += late;
    if (late > t.longestDelay) t.longestDelay = late;
  }
  return times.filter((t) => t.goroutines > 0).sort((a, b) => b.running - a.running);
}
