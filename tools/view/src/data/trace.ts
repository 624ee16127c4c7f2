// A trace in memory: columns of typed arrays, and the texts they refer to.
import { Cursor, decodeColumn, numbers, takeElement, type Numbers } from './blocks';
import { Series } from './series';

// Numbers of tables, as in tools/trace/view/table.h.
const enum Table { goroutines, slices, syscalls, held, calls, marks, stops, collections, series }

/** Why a goroutine left its P: EndKind in tools/trace/view/strings.h. */
export const enum EndKind { none, blocked, stopped, ended, lost, stillRunning, paused }

/** GoState in tools/trace/reader/event.h. */
export const enum GoState { undetermined, absent, runnable, running, syscall, waiting }

/** RecordKind in tools/trace/gofer_records.h. */
export const enum Mark { steal = 1, queue, globalQueue, runnext, handOff, pause, pass, retake, sysmon }

interface IndexTable {
  rows: number;
  max: number[];
  lanes: number[];
}

interface Index {
  version: number;
  title: string;
  damage: string;
  format: string;
  events: number;
  records: number;
  span: number;
  procs: number[];
  threads: number[];
  tables: IndexTable[];
  strings: string[];
  frames: [number, number, number][];
  stacks: number[][];
  ends: [EndKind, number, number][];
}

export interface Frame {
  function: string;
  file: string;
  line: number;
}

/** Rows of several lanes, one lane after the other: lane i has those from first[i] to first[i + 1]. */
export interface Lanes {
  first: Uint32Array;
  start: Float64Array;
  length: Numbers;
}

/** Goroutines on Ps. Columns whose number may be missing have 0 for that, and else one more: see lanes.h. */
export interface Slices extends Lanes {
  count: number;
  g: Numbers;
  end: Numbers;
  from: Numbers;
  waited: Numbers;
  late: Numbers;
  by: Numbers;
  byLane: Numbers;
  byStack: Numbers;
  m: Numbers;
}

export interface Goroutines {
  count: number;
  id: Numbers;
  function: Numbers; // a string
  name: Numbers; // a string
  created: Numbers;
  creator: Numbers;
  stack: Numbers;
  ended: Numbers;
  state: Numbers;
  ready: Numbers;
  readyBy: Numbers;
}

export interface Marks {
  count: number;
  time: Float64Array;
  kind: Numbers;
  a: Numbers;
  b: Numbers;
  c: Numbers;
  d: Numbers;
}

export interface Calls {
  count: number;
  end: Float64Array;
  length: Numbers;
  g: Numbers;
  m: Numbers;
  stack: Numbers;
}

export interface Ranges {
  count: number;
  start: Float64Array;
  length: Numbers;
  kind: Numbers;
}

/** Columns of one table while its blocks are read. */
class Reading {
  readonly columns: Numbers[];
  readonly first: Uint32Array;
  private readonly filled: Uint32Array; // by lane

  constructor(table: IndexTable, columns: number, timed: boolean) {
    const lanes = Math.max(1, table.lanes.length);
    this.first = new Uint32Array(lanes + 1);
    for (let i = 0; i < lanes; i++) this.first[i + 1] = this.first[i]! + (table.lanes[i] ?? 0);
    this.filled = this.first.slice(0, lanes);
    this.columns = Array.from({ length: columns }, (_, i) =>
      timed && i === 0 ? new Float64Array(table.rows) : numbers(table.rows, table.max[i] ?? 0),
    );
  }

  /** Decodes a block's columns. Returns its first row. */
  add(cursor: Cursor, lane: number, rows: number): number {
    const first = this.filled[lane]!;
    this.filled[lane] = first + rows;
    for (const column of this.columns) {
      const size = cursor.next();
      decodeColumn(cursor.bytes, cursor.at, column, first, rows);
      cursor.at += size;
    }
    return first;
  }
}

export class Trace {
  readonly title: string;
  readonly damage: string;
  readonly format: string;
  readonly events: number;
  readonly records: number;
  readonly span: number;
  /** Ids of Ps and Ms, by lane and number. */
  readonly procs: number[];
  readonly threads: number[];
  readonly strings: string[];
  /** Lanes in the order in which they are shown. */
  readonly procOrder: number[];

  slices!: Slices;
  syscalls!: Lanes & { stack: Numbers };
  held!: Lanes & { m: Numbers };
  goroutines!: Goroutines;
  calls!: Calls;
  marks!: Marks;
  stops!: Ranges;
  collections!: Ranges;
  readonly series = new Map<number, Series>();

  private readonly readings: Reading[];
  private rowsById: Map<number, number> | null = null;

  constructor(private readonly index: Index) {
    this.title = index.title;
    this.damage = index.damage;
    this.format = index.format;
    this.events = index.events;
    this.records = index.records;
    this.span = Math.max(1, index.span);
    this.procs = index.procs;
    this.threads = index.threads;
    this.strings = index.strings;
    this.procOrder = index.procs.map((_, i) => i).sort((a, b) => index.procs[a]! - index.procs[b]!);
    const columns = [10, 11, 3, 3, 5, 6, 3, 2];
    this.readings = columns.map((count, i) => new Reading(index.tables[i]!, count, i !== Table.goroutines));
  }

  addBlock(bytes: Uint8Array): void {
    const cursor = new Cursor(bytes);
    const table: Table = cursor.next();
    const lane = cursor.next();
    const rows = cursor.next();
    let from = cursor.next();
    if (table === Table.series) {
      let series = this.series.get(lane);
      if (!series) this.series.set(lane, (series = new Series()));
      return series.addBlock(cursor, rows, from);
    }
    const reading = this.readings[table]!;
    const first = reading.add(cursor, lane, rows);
    if (table === Table.goroutines) return;
    const time = reading.columns[0] as Float64Array;
    const length = reading.columns[1]!;
    // What the next row counts from: the end of this one, or where it began, or what it is a point of.
    const countsFromEnd = table !== Table.calls && table !== Table.marks;
    for (let i = first; i < first + rows; i++) {
      from = time[i] = time[i]! + from;
      if (countsFromEnd) from += length[i]!;
    }
  }

  /** To be called after the last block. */
  finish(): void {
    const columns = (table: Table) => this.readings[table]!.columns;
    const lanes = (table: Table) => {
      const reading = this.readings[table]!;
      const first = new Uint32Array(this.procs.length + 1).fill(reading.first[reading.first.length - 1]!);
      first.set(reading.first.subarray(0, Math.min(reading.first.length, first.length)));
      return { first, start: reading.columns[0] as Float64Array, length: reading.columns[1]! };
    };
    const s = columns(Table.slices);
    this.slices = {
      ...lanes(Table.slices),
      count: s[0]!.length, g: s[2]!, end: s[3]!, from: s[4]!, waited: s[5]!, late: s[6]!, by: s[7]!, byLane: s[8]!,
      byStack: s[9]!, m: s[10]!,
    };
    this.syscalls = { ...lanes(Table.syscalls), stack: columns(Table.syscalls)[2]! };
    this.held = { ...lanes(Table.held), m: columns(Table.held)[2]! };
    const g = columns(Table.goroutines);
    this.goroutines = {
      count: g[0]!.length, id: g[0]!, function: g[1]!, name: g[2]!, created: g[3]!, creator: g[4]!, stack: g[5]!,
      ended: g[6]!, state: g[7]!, ready: g[8]!, readyBy: g[9]!,
    };
    const c = columns(Table.calls);
    this.calls = { count: c[0]!.length, end: c[0] as Float64Array, length: c[1]!, g: c[2]!, m: c[3]!, stack: c[4]! };
    const m = columns(Table.marks);
    this.marks = {
      count: m[0]!.length, time: m[0] as Float64Array, kind: m[1]!, a: m[2]!, b: m[3]!, c: m[4]!, d: m[5]!,
    };
    const ranges = (table: Table): Ranges => {
      const r = columns(table);
      return { count: r[0]!.length, start: r[0] as Float64Array, length: r[1]!, kind: r[2] ?? new Uint8Array(r[0]!.length) };
    };
    this.stops = ranges(Table.stops);
    this.collections = ranges(Table.collections);
  }

  /** The row of the goroutine with an id, or -1. */
  rowOf(id: number): number {
    if (this.goroutines.count > 5e5) return this.goroutines.id.indexOf(id);
    if (!this.rowsById) {
      this.rowsById = new Map();
      for (let i = 0; i < this.goroutines.count; i++) this.rowsById.set(this.goroutines.id[i]!, i);
    }
    return this.rowsById.get(id) ?? -1;
  }

  functionOf(row: number): string {
    return this.strings[this.goroutines.function[row]!] || '(function not known)';
  }
  nameOf(row: number): string {
    return this.strings[this.goroutines.name[row]!] ?? '';
  }
  endKind(end: number): EndKind {
    return this.index.ends[end]?.[0] ?? EndKind.none;
  }
  endReason(end: number): string {
    return this.strings[this.index.ends[end]?.[1] ?? 0] ?? '';
  }
  endStack(end: number): number {
    return this.index.ends[end]?.[2] ?? 0;
  }
  get endCount(): number {
    return this.index.ends.length;
  }
  /** The innermost frame first. */
  stack(number: number): Frame[] {
    return (this.index.stacks[number] ?? []).map((i) => {
      const [fn, file, line] = this.index.frames[i]!;
      return { function: this.strings[fn]!, file: this.strings[file]!, line };
    });
  }
  /** The lane of a slice. */
  laneOf(slice: number): number {
    const { first } = this.slices;
    let low = 0;
    let high = first.length - 1;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (first[middle]! <= slice) low = middle;
      else high = middle;
    }
    // Lanes without slices begin where the next one does.
    while (low + 1 < first.length - 1 && first[low + 1]! <= slice) low++;
    return low;
  }
  endTime(slice: number): number {
    return this.slices.start[slice]! + this.slices.length[slice]!;
  }
}

/** The first of rows [from, to) whose start is not before a time. */
export function lowerBound(start: Float64Array, time: number, from: number, to: number): number {
  while (from < to) {
    const middle = (from + to) >> 1;
    if (start[middle]! < time) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Reads the trace from the page's data elements, and removes them. */
export async function loadTrace(progress: (part: number) => void): Promise<Trace> {
  const indexElement = document.querySelector('script[data-trace="index"]');
  if (!indexElement) throw new Error('This page has no trace: the file is cut off, or is the viewer alone.');
  const index = JSON.parse(new TextDecoder().decode(await takeElement(indexElement))) as Index;
  if (index.version !== 1) throw new Error(`This page has data of version ${index.version}.`);
  const trace = new Trace(index);
  const elements = [...document.querySelectorAll('script[data-trace="block"]')];
  let painted = performance.now();
  for (let i = 0; i < elements.length; i++) {
    const element = elements[i]!;
    elements[i] = null!;
    trace.addBlock(await takeElement(element));
    if (performance.now() - painted > 100) {
      progress(i / elements.length);
      await new Promise((resolve) => setTimeout(resolve));
      painted = performance.now();
    }
  }
  trace.finish();
  return trace;
}
