// What led from one P to another, when the view is near enough: wake-ups and creations as arrows from where a
// goroutine was readied to where it ran; Gofer's steals and hand-offs as marks on the lanes.
import { Mark, lowerBound } from '../data/trace';
import { LaneRaster } from './raster';
import { gutter, type Timeline } from './timeline';

const maxArrows = 250;
const maxMarks = 600;

type Context = CanvasRenderingContext2D;

function arrow(c: Context, x1: number, y1: number, x2: number, y2: number, color: string): void {
  c.strokeStyle = color;
  c.fillStyle = color;
  c.lineWidth = 1.2;
  c.beginPath();
  c.moveTo(x1, y1);
  const bend = Math.max(8, Math.min(60, Math.abs(x2 - x1) / 2 + Math.abs(y2 - y1) / 6));
  c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 2, y2);
  c.stroke();
  c.beginPath();
  c.moveTo(x2, y2);
  c.lineTo(x2 - 6, y2 - 3.2);
  c.lineTo(x2 - 6, y2 + 3.2);
  c.fill();
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
    const y1 = timeline.yOfLane(slices.byLane[slice]! - 1);
    const y2 = timeline.yOfLane(trace.laneOf(slice));
    if (y1 === null || y2 === null) continue;
    const ready = start - (slices.late[slice]! - 1);
    const created = goroutines.created[slices.g[slice]!] === ready + 1;
    c.globalAlpha = selected < 0 || slice === selected ? 0.9 : 0.35;
    arrow(c, timeline.xOf(ready), y1, timeline.xOf(start), y2, created ? theme.create : theme.wake);
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
  const yOf = (number: number) => (number > 0 ? timeline.yOfLane(number - 1) : null);
  switch (marks.kind[mark] as Mark) {
    case Mark.steal: {
      const thief = yOf(marks.a[mark]!);
      const victim = yOf(marks.b[mark]!);
      if (thief === null || victim === null) return;
      arrow(c, x - 7, victim, x, thief, theme.steal);
      c.fillText(String(marks.c[mark]), x - 4, (victim + thief) / 2);
      return;
    }
    case Mark.handOff:
    case Mark.pass: {
      const y = yOf(marks.a[mark]!);
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
      const y = yOf(marks.a[mark]!);
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
      const y = yOf(marks.c[mark]!);
      if (y === null) return;
      c.fillStyle = theme.pause;
      c.fillRect(x - 4, y - 6, 3, 12);
      c.fillRect(x + 1, y - 6, 3, 12);
      return;
    }
    default:
  }
}
