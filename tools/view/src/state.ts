// What the user sees and has chosen, and the part of it that a permalink keeps.
import { QueryError, runQuery } from './data/query';
import type { Trace } from './data/trace';

export type Tab = 'selection' | 'matches' | 'latency' | 'functions';
export type ThemeChoice = 'auto' | 'light' | 'dark';

export interface State {
  from: number; // the stretch of time in view, ns
  to: number;
  row: number; // the selected goroutine, or -1
  slice: number; // of it, or -1
  query: string;
  queryError: string;
  flags: Uint8Array | null; // slices that fit the query
  matches: number;
  threads: boolean; // lanes of Ms
  pinned: number[]; // goroutines with lanes
  theme: ThemeChoice;
  tab: Tab;
  bar: number; // of the histogram, or -1
  overlay: '' | 'help' | 'legend';
  panelHeight: number;
}

const minSpan = 20; // ns

export class Store {
  state: State;
  private readonly listeners = new Set<() => void>();
  private linkTimer = 0;

  constructor(readonly trace: Trace) {
    this.state = {
      from: 0, to: trace.span, row: -1, slice: -1, query: '', queryError: '', flags: null, matches: 0,
      threads: false, pinned: [], theme: 'auto', tab: 'functions', bar: -1, overlay: '', panelHeight: 250,
    };
    this.readLink();
    window.addEventListener('hashchange', () => this.readLink());
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  set(change: Partial<State>): void {
    Object.assign(this.state, change);
    for (const listener of this.listeners) listener();
    window.clearTimeout(this.linkTimer);
    this.linkTimer = window.setTimeout(() => this.writeLink(), 150);
  }

  /** Shows a stretch of time; what is beyond the trace is cut off. */
  show(from: number, to: number): void {
    const { span } = this.trace;
    const margin = 0.02 * (to - from);
    const length = Math.min(Math.max(to - from, minSpan), span * 1.04);
    let begin = (from + to - length) / 2;
    begin = Math.max(-Math.max(margin, span * 0.02), Math.min(begin, span + Math.max(margin, span * 0.02) - length));
    this.set({ from: begin, to: begin + length });
  }

  zoom(factor: number, around: number): void {
    const { from, to } = this.state;
    this.show(around - (around - from) * factor, around + (to - around) * factor);
  }

  select(row: number, slice: number, tab: Tab | null = 'selection'): void {
    this.set(tab === null ? { row, slice } : { row, slice, tab });
  }

  /** Selects a slice and brings it into view, with the time from when the goroutine was readied. */
  jumpTo(slice: number, tab: Tab | null = null): void {
    const { slices } = this.trace;
    const start = slices.start[slice]!;
    const end = start + slices.length[slice]!;
    const ready = slices.late[slice]! > 0 ? start - slices.late[slice]! + 1 : start;
    const length = Math.max(end - ready, 2000);
    const { from, to } = this.state;
    const shown = to - from;
    // Zoom only if the slice would be too small to see, or too large.
    if (end - ready < shown / 200 || end - ready > shown * 0.9) {
      this.show((ready + end) / 2 - length * 1.5, (ready + end) / 2 + length * 1.5);
    } else if (ready < from || end > to) {
      this.show((ready + end - shown) / 2, (ready + end + shown) / 2);
    }
    this.select(slices.g[slice]!, slice, tab);
  }

  search(query: string, show = true): void {
    const change: Partial<State> = { query, queryError: '', flags: null, matches: 0, bar: -1 };
    try {
      const result = runQuery(this.trace, query);
      if (result) Object.assign(change, { flags: result.flags, matches: result.count });
      if (result && show) change.tab = 'matches';
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      change.queryError = error.message;
    }
    this.set(change);
  }

  togglePin(row: number): void {
    const { pinned } = this.state;
    this.set({ pinned: pinned.includes(row) ? pinned.filter((r) => r !== row) : [...pinned, row] });
  }

  private link(): string {
    const s = this.state;
    const parts = [`t=${Math.round(s.from)}-${Math.round(s.to)}`];
    const id = (row: number) => this.trace.goroutines.id[row];
    if (s.row >= 0) parts.push(`g=${id(s.row)}`);
    if (s.slice >= 0) parts.push(`at=${this.trace.slices.start[s.slice]}`);
    if (s.query) parts.push(`q=${encodeURIComponent(s.query)}`);
    if (s.threads) parts.push('m=1');
    if (s.pinned.length > 0) parts.push(`pin=${s.pinned.map(id).join(',')}`);
    if (s.theme !== 'auto') parts.push(`theme=${s.theme}`);
    parts.push(`tab=${s.tab}`);
    return `#${parts.join('&')}`;
  }

  private writeLink(): void {
    const link = this.link();
    if (link !== location.hash) history.replaceState(null, '', link);
  }

  private readLink(): void {
    if (location.hash === this.link()) return;
    const values = new Map(
      location.hash.slice(1).split('&').map((part) => {
        const [key = '', ...rest] = part.split('=');
        return [key, rest.join('=')] as const;
      }),
    );
    const text = (key: string) => {
      try {
        return decodeURIComponent(values.get(key) ?? '');
      } catch {
        return '';
      }
    };
    const time = /^(-?\d+)-(\d+)$/.exec(text('t'));
    if (time) this.show(Number(time[1]), Number(time[2]));
    const change: Partial<State> = { threads: text('m') === '1' };
    const row = values.has('g') ? this.trace.rowOf(Number(text('g'))) : -1;
    change.row = row;
    change.slice = row >= 0 && values.has('at') ? this.sliceAt(row, Number(text('at'))) : -1;
    change.pinned = text('pin').split(',').filter(Boolean).map((id) => this.trace.rowOf(Number(id))).filter((r) => r >= 0);
    const theme = text('theme');
    change.theme = theme === 'light' || theme === 'dark' ? theme : 'auto';
    const tab = text('tab');
    if (tab === 'selection' || tab === 'matches' || tab === 'latency' || tab === 'functions') change.tab = tab;
    else if (row >= 0) change.tab = 'selection';
    this.set(change);
    if (text('q') !== this.state.query) this.search(text('q'), false);
  }

  private sliceAt(row: number, start: number): number {
    const { slices } = this.trace;
    for (let i = slices.start.indexOf(start); i >= 0; i = slices.start.indexOf(start, i + 1)) {
      if (slices.g[i] === row) return i;
    }
    return -1;
  }
}
