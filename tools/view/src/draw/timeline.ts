// The canvas: draws the bands of layout.ts, the ruler, and what lies over them.
import { lifeOf, type Life } from '../data/life';
import { EndKind, lowerBound, type Trace } from '../data/trace';
import { shortFunction, timeAt } from '../format';
import type { Store } from '../state';
import { drawArrows } from './arrows';
import { drawChart, drawRing } from './charts';
import { drawLife } from './life';
import { LaneCache, layOut, type Band, type GoroutineBand, type LaneBand } from './layout';
import { colorsOfFunctions, type Theme } from './palette';
import { LaneRaster } from './raster';

export const gutter = 92;
export const rulerHeight = 26;

const minNamed = 26; // pixels of a slice that has its name in it
const maxNamed = 20_000; // slices that are looked at for that, in a lane and a frame

/** What is under the mouse. */
export interface Hit {
  time: number;
  band: Band | null;
  slice: number; // or -1
  near: number; // how many slices share the pixel
}

export class Timeline {
  readonly cache: LaneCache;
  readonly functionColors: Uint8Array;
  bands: Band[] = [];
  scroll = 0;
  contentHeight = 0;
  width = 0; // CSS pixels
  height = 0;
  mouseTime: number | null = null;
  chosen: [number, number] | null = null; // a stretch that the mouse is choosing, in CSS pixels
  private readonly context: CanvasRenderingContext2D;
  private readonly goroutineColors: Uint8Array;
  private readonly lives = new Map<number, Life>();
  private readonly widths = new Map<string, number>();
  private raster: LaneRaster | null = null;
  scale = 1; // device pixels of a CSS pixel

  constructor(
    readonly trace: Trace,
    readonly store: Store,
    readonly canvas: HTMLCanvasElement,
    public theme: Theme,
  ) {
    this.context = canvas.getContext('2d', { alpha: false })!;
    this.functionColors = colorsOfFunctions(trace);
    const fn = trace.goroutines.function;
    this.goroutineColors = Uint8Array.from({ length: fn.length }, (_, row) => this.functionColors[fn[row]!]!);
    this.cache = new LaneCache(trace, this.colorOf);
  }

  readonly colorOf = (slice: number): number => this.goroutineColors[this.trace.slices.g[slice]!]!;
  colorOfGoroutine(row: number): number {
    return this.goroutineColors[row]!;
  }

  lifeOf(row: number): Life {
    let life = this.lives.get(row);
    if (!life) {
      if (this.lives.size > 64) this.lives.clear();
      this.lives.set(row, (life = lifeOf(this.trace, row)));
    }
    return life;
  }

  resize(width: number, height: number): void {
    this.scale = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(height * this.scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  get plotWidth(): number {
    return Math.max(1, this.width - gutter);
  }
  xOf(time: number): number {
    const { from, to } = this.store.state;
    return gutter + ((time - from) / (to - from)) * this.plotWidth;
  }
  timeAt(x: number): number {
    const { from, to } = this.store.state;
    return from + ((x - gutter) / this.plotWidth) * (to - from);
  }
  /** Where a P's lane is on the canvas. */
  edgesOfLane(lane: number): { top: number; bottom: number } | null {
    const band = this.bands.find((b) => b.kind === 'p' && b.number === lane);
    return band ? { top: this.yOf(band), bottom: this.yOf(band) + band.height } : null;
  }
  yOf(band: Band): number {
    return rulerHeight + band.y - this.scroll;
  }

  draw(): void {
    const { context: c, theme, store } = this;
    const layout = layOut(this.trace, store.state, this.cache, this.height - rulerHeight);
    this.bands = layout.bands;
    this.contentHeight = layout.height;
    this.scroll = Math.max(0, Math.min(this.scroll, layout.height - (this.height - rulerHeight)));
    c.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    c.fillStyle = theme.page;
    c.fillRect(0, 0, this.width, this.height);
    c.save();
    c.beginPath();
    c.rect(0, rulerHeight, this.width, this.height - rulerHeight);
    c.clip();
    for (const band of this.bands) {
      const y = this.yOf(band);
      if (y + band.height < rulerHeight || y - 12 > this.height) continue;
      this.drawBand(band, y);
    }
    this.drawStops();
    c.save();
    c.beginPath();
    c.rect(gutter, rulerHeight, this.plotWidth, this.height - rulerHeight);
    c.clip();
    this.drawSelection();
    drawArrows(this, c);
    c.restore();
    c.restore();
    this.drawRuler();
    this.drawScrollbar();
    if (this.chosen) {
      c.fillStyle = theme.accent;
      c.globalAlpha = 0.2;
      c.fillRect(this.chosen[0], 0, this.chosen[1] - this.chosen[0], this.height);
      c.globalAlpha = 1;
    }
  }

  private drawBand(band: Band, y: number): void {
    const { context: c, theme } = this;
    c.textBaseline = 'middle';
    if (band.kind === 'title') {
      c.font = '600 11px system-ui, sans-serif';
      c.fillStyle = theme.weak;
      c.fillText(band.label, 12, y + band.height / 2);
      return;
    }
    if (band.kind === 'chart') drawChart(this, c, band, y);
    else if (band.kind === 'g') drawLife(this, c, band, y);
    else this.drawLane(band, y);
    this.drawLabel(band, y);
  }

  private drawLabel(band: Exclude<Band, { kind: 'title' }>, y: number): void {
    const { context: c, theme } = this;
    c.fillStyle = theme.text;
    c.font = '12px system-ui, sans-serif';
    if (band.kind !== 'g') {
      c.fillText(band.label, 12, y + band.height / 2 + 0.5);
      return;
    }
    c.fillText(band.label, 12, y + band.height / 2 + 0.5);
    const width = this.textWidth(band.label);
    c.fillStyle = theme.weak;
    c.font = '11px system-ui, sans-serif';
    const name = this.fit(shortFunction(this.trace.functionOf(band.row)), gutter - 24 - width);
    if (name) c.fillText(name, 18 + width, y + band.height / 2 + 0.5);
  }

  textWidth(text: string): number {
    const { context: c } = this;
    const key = c.font + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      this.widths.set(key, (width = c.measureText(text).width));
    }
    return width;
  }

  /** The text, cut off to fit into a width; empty if not even some of it does. */
  fit(text: string, width: number): string {
    const full = this.textWidth(text);
    if (full <= width) return text;
    const letters = Math.floor((text.length * (width - 8)) / full);
    return letters < 3 ? '' : `${text.slice(0, letters)}…`;
  }

  private drawLane(band: LaneBand, y: number): void {
    const { store, trace, theme, cache } = this;
    const { from, to, flags } = store.state;
    const width = Math.round(this.plotWidth * this.scale);
    const height = Math.round(band.height * this.scale);
    if (!this.raster || this.raster.width !== width || this.raster.height !== height) {
      this.raster = new LaneRaster(width, height);
    }
    const { raster } = this;
    raster.clear();
    raster.addSlices(
      trace.slices, band.rows, from, to, this.colorOf, flags,
      () => cache.levelsOf(band), () => cache.matchingLevelsOf(band, flags!),
    );
    if (band.kind === 'p') {
      raster.addCalls(trace.syscalls, cache.syscallRows(band)!, from, to);
      raster.addHeld(trace.held, cache.heldRows(band), from, to);
    } else {
      this.addThreadCalls(raster, band, from, to);
    }
    const perPixel = (to - from) / width;
    raster.paint(theme, Math.round(Math.abs(from / perPixel) % 1e6));
    this.context.putImageData(raster.image, Math.round(gutter * this.scale), Math.round(y * this.scale));
    if (band.ring) drawRing(this, this.context, band.ring, y - 9);
    this.drawTexts(band, y, from, to);
  }

  /** On the lane of an M: system calls, with and without a P, and paused goroutines, which keep their M. */
  private addThreadCalls(raster: LaneRaster, band: LaneBand, from: number, to: number): void {
    const { trace } = this;
    const { calls, slices } = trace;
    const perPixel = (to - from) / raster.width;
    for (const i of this.cache.callsOfThreads()[band.number]!) {
      const end = calls.end[i]!;
      const begin = end - calls.length[i]!;
      if (end < from || begin > to) continue;
      raster.hatchSpan((begin - from) / perPixel, (end - from) / perPixel, this.colorOfGoroutine(calls.g[i]!));
    }
    const seen = LaneRaster.visible(slices, band.rows, from, to);
    if (seen.to - seen.from > 5000) return;
    for (let i = seen.from; i < seen.to; i++) {
      const slice = seen.order![i]!;
      raster.addCallsOfSlice(trace.syscalls, trace.laneOf(slice), slices.start[slice]!, trace.endTime(slice), from, to);
      if (trace.endKind(slices.end[slice]!) !== EndKind.paused || i + 1 === band.rows.to) continue;
      const next = seen.order![i + 1]!;
      if (slices.g[next] !== slices.g[slice]) continue;
      const begin = trace.endTime(slice);
      raster.hatchSpan((begin - from) / perPixel, (slices.start[next]! - from) / perPixel, this.colorOf(slice));
    }
  }

  /** Names in slices that are wide enough. */
  private drawTexts(band: LaneBand, y: number, from: number, to: number): void {
    const { trace, theme, context: c } = this;
    const { slices } = trace;
    const seen = LaneRaster.visible(slices, band.rows, from, to);
    if (seen.to - seen.from > maxNamed) return;
    const { flags } = this.store.state;
    const size = band.height >= 28 ? 12 : 11;
    c.font = `${size}px system-ui, sans-serif`;
    const shortest = ((to - from) / this.plotWidth) * minNamed;
    for (let i = seen.from; i < seen.to; i++) {
      const slice = seen.order === null ? i : seen.order[i]!;
      if (slices.length[slice]! < shortest) continue;
      const a = Math.max(gutter, this.xOf(slices.start[slice]!));
      const b = Math.min(this.width, this.xOf(trace.endTime(slice)));
      if (b - a < minNamed) continue;
      const row = slices.g[slice]!;
      const id = `G${trace.goroutines.id[row]}`;
      const name = shortFunction(trace.functionOf(row));
      const both = `${name} ${id}`;
      const text = this.textWidth(both) <= b - a - 8 ? both : this.fit(this.textWidth(id) <= b - a - 8 && b - a < 60 ? id : both, b - a - 8);
      if (!text) continue;
      c.fillStyle = flags !== null && flags[slice] === 0 ? theme.weak : theme.onSlice;
      c.fillText(text, a + 5, y + band.height / 2 + 0.5);
    }
  }

  /** Frames around the slices of the selected goroutine. */
  private drawSelection(): void {
    const { context: c, theme, trace } = this;
    const { row, slice, from, to } = this.store.state;
    if (row < 0) return;
    const life = this.lifeOf(row);
    const { slices } = trace;
    let first = 0;
    let last = life.slices.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (trace.endTime(life.slices[middle]!) < from) first = middle + 1;
      else last = middle;
    }
    c.strokeStyle = theme.accent;
    c.fillStyle = theme.accent;
    for (let i = first, drawn = 0; i < life.slices.length && drawn < 2000; i++, drawn++) {
      const own = life.slices[i]!;
      if (slices.start[own]! > to) break;
      const band = this.bandOfSlice(own);
      if (!band) continue;
      const y = this.yOf(band);
      const a = this.xOf(slices.start[own]!);
      const b = Math.max(a + 2, this.xOf(trace.endTime(own)));
      if (own !== slice) {
        c.fillRect(a, y + band.height - 2, b - a, 2);
        continue;
      }
      c.lineWidth = 2;
      c.strokeRect(a - 0.5, y - 0.5, b - a + 1, band.height + 1);
    }
  }

  private bandOfSlice(slice: number): Band | undefined {
    const lane = this.trace.laneOf(slice);
    return this.bands.find((b) => b.kind === 'p' && b.number === lane);
  }

  /** The stopped world: bands over all lanes. */
  private drawStops(): void {
    const { context: c, theme, trace } = this;
    const { from, to } = this.store.state;
    const { stops } = trace;
    c.font = '11px system-ui, sans-serif';
    for (let i = 0, lastX = -1; i < stops.count; i++) {
      const begin = stops.start[i]!;
      const end = begin + stops.length[i]!;
      if (end < from || begin > to) continue;
      const a = Math.max(gutter, this.xOf(begin));
      const b = Math.max(a + 1, Math.min(this.width, this.xOf(end)));
      if (b <= lastX) continue;
      lastX = b;
      c.fillStyle = theme.stop;
      c.fillRect(a, rulerHeight, b - a, Math.min(this.height, this.contentHeight - this.scroll));
      c.fillStyle = theme.stopEdge;
      c.fillRect(a, rulerHeight, b - a, 2);
      const text = this.fit(`world stopped: ${trace.strings[stops.kind[i]!] || 'not known'}`, b - a - 8);
      if (text) c.fillText(text, a + 4, rulerHeight + 11);
    }
  }

  private drawRuler(): void {
    const { context: c, theme, trace } = this;
    const { from, to } = this.store.state;
    c.fillStyle = theme.page;
    c.fillRect(0, 0, this.width, rulerHeight);
    const { collections } = trace;
    c.fillStyle = theme.collection;
    for (let i = lowerBound(collections.start, from, 0, collections.count) - 1, lastX = -1; i < collections.count; i++) {
      if (i < 0 || collections.start[i]! > to) continue;
      const a = Math.max(gutter, this.xOf(collections.start[i]!));
      const b = Math.min(this.width, Math.max(a + 1, this.xOf(collections.start[i]! + collections.length[i]!)));
      if (b <= lastX || b < gutter) continue;
      lastX = b;
      c.fillRect(a, rulerHeight - 6, b - a, 3);
    }
    const perTick = ((to - from) / this.plotWidth) * 110;
    const power = 10 ** Math.floor(Math.log10(perTick));
    const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= perTick)!);
    c.font = '11px system-ui, sans-serif';
    c.textBaseline = 'middle';
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      const x = Math.round(this.xOf(tick)) + 0.5;
      c.fillStyle = theme.faint;
      c.fillRect(x - 0.5, 0, 1, rulerHeight);
      c.fillStyle = theme.weak;
      c.fillText(timeAt(Math.round(tick), step), x + 5, 10);
    }
    c.fillStyle = theme.faint;
    c.fillRect(0, rulerHeight - 1, this.width, 1);
    c.fillStyle = theme.page;
    c.fillRect(0, 0, gutter, rulerHeight - 1);
    c.fillStyle = theme.weak;
    c.fillText(timeAt(to - from, (to - from) / 100), 12, 10);
    if (this.mouseTime !== null) this.drawMouse(this.mouseTime, (to - from) / this.plotWidth);
  }

  private drawMouse(time: number, perPixel: number): void {
    const { context: c, theme } = this;
    const x = Math.round(this.xOf(time)) + 0.5;
    if (x < gutter) return;
    c.fillStyle = theme.weak;
    c.globalAlpha = 0.5;
    c.fillRect(x - 0.5, rulerHeight, 1, this.height);
    c.globalAlpha = 1;
    const text = timeAt(time, perPixel);
    const width = this.textWidth(text) + 10;
    const left = Math.min(x + 1, this.width - width);
    c.fillStyle = theme.text;
    c.fillRect(left, 1, width, 18);
    c.fillStyle = theme.page;
    c.fillText(text, left + 5, 10);
  }

  private drawScrollbar(): void {
    const shown = this.height - rulerHeight;
    if (this.contentHeight <= shown) return;
    const { context: c, theme } = this;
    const length = Math.max(24, (shown * shown) / this.contentHeight);
    const y = rulerHeight + (this.scroll / (this.contentHeight - shown)) * (shown - length);
    c.fillStyle = theme.weak;
    c.globalAlpha = 0.45;
    c.fillRect(this.width - 6, y, 4, length);
    c.globalAlpha = 1;
  }

  bandAt(y: number): Band | null {
    if (y < rulerHeight) return null;
    const content = y - rulerHeight + this.scroll;
    return this.bands.find((b) => content >= b.y - 1 && content < b.y + b.height + 2) ?? null;
  }

  hit(x: number, y: number): Hit {
    const time = this.timeAt(x);
    const band = x < gutter ? null : this.bandAt(y);
    if (!band || (band.kind !== 'p' && band.kind !== 'm' && band.kind !== 'g')) return { time, band, slice: -1, near: 0 };
    const slack = ((this.store.state.to - this.store.state.from) / this.plotWidth) * 2;
    if (band.kind === 'g') return this.hitLife(band, time, slack);
    const { slices } = this.trace;
    const seen = LaneRaster.visible(slices, band.rows, time - slack, time + slack);
    let best = -1;
    let distance = Infinity;
    let near = 0;
    for (let i = seen.from; i < seen.to; i++) {
      const slice = seen.order === null ? i : seen.order[i]!;
      const begin = slices.start[slice]!;
      const end = begin + slices.length[slice]!;
      if (end < time - slack) continue;
      near++;
      const away = time < begin ? begin - time : time > end ? time - end : 0;
      if (away < distance) {
        distance = away;
        best = slice;
      }
      if (near > 100_000) break;
    }
    return { time, band, slice: best, near };
  }

  private hitLife(band: GoroutineBand, time: number, slack: number): Hit {
    const segments = this.lifeOf(band.row).segments;
    const inside = segments.find((s) => s.begin <= time && time < s.end);
    const found = inside ?? segments.find((s) => Math.abs(s.begin - time) < slack);
    return { time, band, slice: found?.slice ?? -1, near: 1 };
  }
}
