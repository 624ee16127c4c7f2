// What led from one P to another, when the view is near enough: wake-ups and creations as arrows from where a
// goroutine was readied to where it ran; Gofer's steals and hand-offs as marks on the lanes.
import { Mark, lowerBound } from '../data/trace';
import { LaneRaster } from './raster';
import { gutter, type Timeline } from './timeline';

const maxArrows = 250;
const maxMarks = 600;
const longest = 120; // pixels of an arrow within a lane

type Context = CanvasRenderingContext2D;

interface Lane {
  top: number;
  bottom: number;
}

function head(c: Context, x: number, y: number, down: boolean): void {
  const back = down ? -6 : 6;
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x - 3.2, y + back);
  c.lineTo(x + 3.2, y + back);
  c.fill();
}

/** From the edge of one lane to the edge of another, so that it covers no text; within a lane above it. */
function arrow(c: Context, x1: number, from: Lane, x2: number, to: Lane, color: string): void {
  c.strokeStyle = color;
  c.fillStyle = color;
  c.lineWidth = 1.2;
  const same = from.top === to.top;
  const down = same || to.top > from.top;
  const y1 = same ? from.top : down ? from.bottom : from.top;
  const y2 = down ? to.top : to.bottom;
  const bend = same ? -7 : (y2 - y1) / 2;
  c.beginPath();
  c.moveTo(x1, y1);
  if (same) c.bezierCurveTo(x1, y1 + bend, x2, y2 + bend, x2, y2 - 3);
  else c.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
  c.stroke();
  head(c, x2, y2, down);
  c.beginPath();
  c.arc(x1, y1, 2, 0, 2 * Math.PI);
  c.fill();
}

export function drawArrows(timeline: Timeline, c: Context): void {
  drawWakeUps(timeline, c);
  drawMarks(timeline, c);
}

function drawWakeUps(timeline: Timeline, c: Context): void {
  const { trace, theme, store } = timeline;
  const { from, to, slice: selected, flags } = store.state;
  const { slices, goroutines } = trace;
  const wakes: number[] = [];
  let all = 0;
  for (const band of timeline.bands) {
    if (band.kind !== 'p') continue;
    const seen = LaneRaster.visible(slices, band.rows, from, to);
    all += seen.to - seen.from;
    if (all > 20 * maxArrows) break;
    for (let i = seen.from; i < seen.to; i++) {
      if (slices.by[i]! > 0 && slices.byLane[i]! > 0 && (flags === null || flags[i] === 1)) wakes.push(i);
    }
  }
  const near = wakes.length <= maxArrows && all <= 20 * maxArrows;
  const shown = near ? wakes : selected >= 0 && slices.by[selected]! > 0 ? [selected] : [];
  for (const slice of shown) {
    const start = slices.start[slice]!;
    const source = timeline.edgesOfLane(slices.byLane[slice]! - 1);
    const target = timeline.edgesOfLane(trace.laneOf(slice));
    if (!source || !target) continue;
    const ready = start - (slices.late[slice]! - 1);
    // Long arrows within a lane would be one line above all of it.
    const isLong = timeline.xOf(start) - timeline.xOf(ready) > longest;
    if (source.top === target.top && isLong && slice !== selected) continue;
    const created = goroutines.created[slices.g[slice]!] === ready + 1;
    c.globalAlpha = slice === selected ? 1 : selected >= 0 ? 0.35 : source.top === target.top ? 0.55 : 0.85;
    arrow(c, timeline.xOf(ready), source, timeline.xOf(start), target, created ? theme.create : theme.wake);
  }
  c.globalAlpha = 1;
}

function drawMarks(timeline: Timeline, c: Context): void {
  const { trace, theme, store } = timeline;
  const { from, to } = store.state;
  const { marks } = trace;
  const first = lowerBound(marks.time, from, 0, marks.count);
  const last = lowerBound(marks.time, to, first, marks.count);
  if (last - first > 20 * maxMarks) return;
  let shown = 0;
  for (let i = first; i < last; i++) if (marks.kind[i] !== Mark.runnext && marks.kind[i] !== Mark.sysmon) shown++;
  if (shown > maxMarks) return;
  c.font = '10px system-ui, sans-serif';
  for (let i = first; i < last; i++) {
    const x = timeline.xOf(marks.time[i]!);
    if (x < gutter) continue;
    drawMark(timeline, c, i, x, theme);
  }
}

function drawMark(timeline: Timeline, c: Context, mark: number, x: number, theme: Timeline['theme']): void {
  const { marks } = timeline.trace;
  const edgesOf = (number: number) => (number > 0 ? timeline.edgesOfLane(number - 1) : null);
  const middleOf = (number: number) => {
    const edges = edgesOf(number);
    return edges && (edges.top + edges.bottom) / 2;
  };
  switch (marks.kind[mark] as Mark) {
    case Mark.steal: {
      const thief = edgesOf(marks.a[mark]!);
      const victim = edgesOf(marks.b[mark]!);
      if (!thief || !victim) return;
      arrow(c, x, victim, x, thief, theme.steal);
      const y = thief.top > victim.top ? thief.top - 8 : thief.bottom + 9;
      c.fillText(String(marks.c[mark]), x + 5, y);
      return;
    }
    case Mark.handOff:
    case Mark.pass: {
      const y = middleOf(marks.a[mark]!);
      if (y === null) return;
      c.fillStyle = theme.handOff;
      c.beginPath();
      c.moveTo(x, y - 6);
      c.lineTo(x + 5, y);
      c.lineTo(x, y + 6);
      c.lineTo(x - 5, y);
      c.fill();
      return;
    }
    case Mark.retake: {
      const y = middleOf(marks.a[mark]!);
      if (y === null) return;
      c.fillStyle = theme.retake;
      c.beginPath();
      c.moveTo(x - 5, y - 11);
      c.lineTo(x + 5, y - 11);
      c.lineTo(x, y - 4);
      c.fill();
      return;
    }
    case Mark.pause: {
      const y = middleOf(marks.c[mark]!);
      if (y === null) return;
      c.fillStyle = theme.pause;
      c.fillRect(x - 4, y - 6, 3, 12);
      c.fillRect(x + 1, y - 6, 3, 12);
      return;
    }
    default:
  }
}
