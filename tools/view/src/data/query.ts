// What the search field understands: words with or without a key, all of which must fit a slice.
import { parseDuration } from '../format';
import { stateAfter } from './life';
import { EndKind, lowerBound, type Trace } from './trace';

export const queryHelp: [string, string][] = [
  ['worker', 'function, name or reason contains it'],
  ['17 or g:17', 'goroutine 17'],
  ['fn:parse', 'function contains it'],
  ['name:conn', 'name (label) of the goroutine contains it'],
  ['reason:chan', 'the slice ended with such a reason'],
  ['state:waiting', 'what came after the slice: waiting, runnable, syscall, paused, ended; or syscall within it'],
  ['dur>1ms', 'the slice is longer (or <)'],
  ['late>50us', 'it began so late after it was readied'],
  ['waited>5ms', 'it waited so long before'],
  ['p:3  m:2', 'on this P, on this M'],
  ['by:17', 'readied by goroutine 17'],
  ['-word', 'not what fits the word'],
];

type Test = (slice: number, lane: number) => boolean;

export class QueryError extends Error {}

/** A flag for each slice, and how many are set. Null if the query is empty. */
export function runQuery(trace: Trace, text: string): { flags: Uint8Array; count: number } | null {
  const words = text.match(/-?[\w.]+[:<>]"[^"]*"|\S+/g) ?? [];
  if (words.length === 0) return null;
  const tests = words.map((word) => {
    const negated = word.length > 1 && word.startsWith('-');
    const test = testOf(trace, negated ? word.slice(1) : word);
    return negated ? (((slice, lane) => !test(slice, lane)) as Test) : test;
  });
  const { slices } = trace;
  const flags = new Uint8Array(slices.count);
  let count = 0;
  for (let lane = 0; lane + 1 < slices.first.length; lane++) {
    for (let i = slices.first[lane]!, last = slices.first[lane + 1]!; i < last; i++) {
      let fits = true;
      for (let t = 0; fits && t < tests.length; t++) fits = tests[t]!(i, lane);
      if (!fits) continue;
      flags[i] = 1;
      count++;
    }
  }
  return { flags, count };
}

function testOf(trace: Trace, word: string): Test {
  const { slices } = trace;
  const compare = /^(dur|late|waited)([<>])=?(.+)$/.exec(word);
  if (compare) {
    const limit = parseDuration(compare[3]!);
    if (Number.isNaN(limit)) throw new QueryError(`${compare[3]} is no duration: 200us, 1.5ms, 2s`);
    const column = compare[1] === 'dur' ? slices.length : compare[1] === 'late' ? slices.late : slices.waited;
    const offset = compare[1] === 'dur' ? 0 : 1;
    if (compare[2] === '>') return (i) => column[i]! - offset > limit;
    return (i) => column[i]! >= offset && column[i]! - offset < limit;
  }
  const keyed = /^(\w+):(.*)$/.exec(word);
  const key = keyed?.[1] ?? '';
  const value = (keyed?.[2] ?? '').replaceAll('"', '').toLowerCase();
  switch (key) {
    case 'g':
      return byGoroutine(trace, (row) => String(trace.goroutines.id[row]) === value);
    case 'fn':
      return byFunction(trace, value);
    case 'name':
      return byGoroutine(trace, (row) => trace.nameOf(row).toLowerCase().includes(value));
    case 'reason':
      return byEnd(trace, (end) => trace.endReason(end).toLowerCase().includes(value));
    case 'state':
      return byState(trace, value);
    case 'p':
      return (_, lane) => String(trace.procs[lane]) === value;
    case 'm': {
      const m = trace.threads.map(String).indexOf(value);
      return (i) => slices.m[i] === m;
    }
    case 'by': {
      const by = trace.rowOf(Number(value)) + 1;
      return (i) => by > 0 && slices.by[i] === by;
    }
    default:
      break;
  }
  const plain = word.replaceAll('"', '').toLowerCase();
  const number = /^g?(\d+)$/.exec(plain);
  if (number) return byGoroutine(trace, (row) => String(trace.goroutines.id[row]) === number[1]);
  const fn = byFunction(trace, plain);
  const name = byGoroutine(trace, (row) => trace.nameOf(row).toLowerCase().includes(plain));
  const reason = byEnd(trace, (end) => trace.endReason(end).toLowerCase().includes(plain));
  return (i, lane) => fn(i, lane) || reason(i, lane) || name(i, lane);
}

function byGoroutine(trace: Trace, fits: (row: number) => boolean): Test {
  const flags = new Uint8Array(trace.goroutines.count);
  for (let row = 0; row < flags.length; row++) flags[row] = fits(row) ? 1 : 0;
  const { g } = trace.slices;
  return (i) => flags[g[i]!] === 1;
}

function byFunction(trace: Trace, text: string): Test {
  const fits = trace.strings.map((name) => name.toLowerCase().includes(text));
  return byGoroutine(trace, (row) => fits[trace.goroutines.function[row]!]! && trace.goroutines.function[row] !== 0);
}

function byEnd(trace: Trace, fits: (end: number) => boolean): Test {
  const flags = Uint8Array.from({ length: trace.endCount }, (_, end) => (fits(end) ? 1 : 0));
  const { end } = trace.slices;
  return (i) => flags[end[i]!] === 1;
}

function byState(trace: Trace, state: string): Test {
  const { slices, syscalls } = trace;
  if (state === 'running') return () => true;
  const after = byEnd(trace, (end) => {
    const kind = trace.endKind(end);
    if (kind === EndKind.ended) return state === 'ended';
    if (kind === EndKind.stillRunning || kind === EndKind.none) return false;
    return stateAfter(trace, end) === state;
  });
  if (!['waiting', 'runnable', 'syscall', 'paused', 'ended'].includes(state)) {
    throw new QueryError('state: is running, runnable, waiting, syscall, paused or ended');
  }
  if (state !== 'syscall') return after;
  return (i, lane) => {
    if (after(i, lane)) return true;
    const last = syscalls.first[lane + 1]!;
    const call = lowerBound(syscalls.start, slices.start[i]!, syscalls.first[lane]!, last);
    return call < last && syscalls.start[call]! < trace.endTime(i);
  };
}
