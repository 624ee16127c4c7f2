// The lane of one goroutine: its states over time.
import type { Segment, State } from '../data/life';
import type { GoroutineBand } from './layout';
import type { Theme } from './palette';
import { gutter, type Timeline } from './timeline';

const patterns = new Map<string, CanvasPattern>();

/** Stripes of a color, for system calls and pauses. */
export function stripes(c: CanvasRenderingContext2D, color: string, dark: boolean): CanvasPattern | string {
  const key = color + dark;
  let pattern = patterns.get(key);
  if (pattern) return pattern;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const t = tile.getContext('2d')!;
  t.fillStyle = color;
  t.fillRect(0, 0, 6, 6);
  t.strokeStyle = dark ? 'rgb(0 0 0 / 0.38)' : 'rgb(0 0 0 / 0.25)';
  t.lineWidth = 2;
  for (const x of [-6, 0, 6]) {
    t.beginPath();
    t.moveTo(x - 1, 7);
    t.lineTo(x + 7, -1);
    t.stroke();
  }
  pattern = c.createPattern(tile, 'repeat') ?? undefined;
  if (pattern) patterns.set(key, pattern);
  return pattern ?? color;
}

function shape(state: State, height: number): [top: number, height: number] {
  switch (state) {
    case 'runnable':
      return [Math.round(height * 0.3), Math.round(height * 0.7)];
    case 'waiting':
      return [Math.round(height / 2) - 1, 3];
    default:
      return [0, height];
  }
}

function fillOf(c: CanvasRenderingContext2D, theme: Theme, state: State, color: number): string | CanvasPattern {
  switch (state) {
    case 'running':
      return theme.css[color]!;
    case 'runnable':
      return theme.runnable;
    case 'waiting':
      return theme.waiting;
    case 'paused':
      return stripes(c, theme.runnable, theme.dark);
    case 'syscall':
      return stripes(c, theme.css[color]!, theme.dark);
  }
}

export function drawLife(timeline: Timeline, c: CanvasRenderingContext2D, band: GoroutineBand, y: number): void {
  const { theme } = timeline;
  const { from, to } = timeline.store.state;
  const color = timeline.colorOfGoroutine(band.row);
  const life = timeline.lifeOf(band.row);
  c.fillStyle = theme.laneCss;
  c.fillRect(gutter, y, timeline.plotWidth, band.height);
  const lastX: Partial<Record<State, number>> = {};
  let low = 0;
  let high = life.segments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (life.segments[middle]!.end < from) low = middle + 1;
    else high = middle;
  }
  // Running is drawn over what waits in the same pixel.
  const late: [Segment, number, number][] = [];
  const put = (segment: Segment, a: number, b: number) => {
    const [top, height] = shape(segment.state, band.height);
    c.fillStyle = fillOf(c, theme, segment.state, color);
    c.fillRect(a, y + top, b - a, height);
  };
  for (let i = low; i < life.segments.length; i++) {
    const segment = life.segments[i]!;
    if (segment.begin > to) break;
    const a = Math.max(gutter, timeline.xOf(segment.begin));
    const b = Math.min(timeline.width, Math.max(a + 1, timeline.xOf(segment.end)));
    const x = Math.floor(b);
    if (lastX[segment.state] === x && b - a <= 1) continue;
    lastX[segment.state] = x;
    if (segment.state === 'running' && b - a <= 1) late.push([segment, a, b]);
    else put(segment, a, b);
  }
  for (const [segment, a, b] of late) put(segment, a, b);
}
