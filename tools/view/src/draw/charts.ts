// Numbers over time: areas between nothing and the mean, and a line at the maximum of each column.
import type { Series } from '../data/series';
import { count } from '../format';
import type { ChartBand } from './layout';
import { gutter, type Timeline } from './timeline';

/** Steps from column to column. They go on from the path's last point if it is `open`. */
function path(
  c: CanvasRenderingContext2D, values: Float32Array, y: number, height: number, top: number, open: boolean,
): void {
  for (let x = 0; x < values.length; x++) {
    const value = values[x]!;
    if (!Number.isFinite(value)) {
      open = false;
      continue;
    }
    const at = y + height - (value / top) * height;
    if (open) c.lineTo(gutter + x, at);
    else c.moveTo(gutter + x, at);
    c.lineTo(gutter + x + 1, at);
    open = true;
  }
}

export function drawChart(timeline: Timeline, c: CanvasRenderingContext2D, band: ChartBand, y: number): void {
  const { theme, plotWidth } = timeline;
  const { from, to } = timeline.store.state;
  const width = Math.floor(plotWidth);
  c.fillStyle = theme.laneCss;
  c.fillRect(gutter, y, plotWidth, band.height);
  const envelopes = band.series.map((s) => s.series.envelope(from, to, width));
  let top = 1;
  for (const { max } of envelopes) {
    for (let x = 0; x < width; x++) if (max[x]! > top) top = max[x]!;
  }
  const height = band.height - 3;
  band.series.forEach(({ color }, i) => {
    const { mean, max } = envelopes[i]!;
    const isLine = color === 'globalQueue';
    if (!isLine) {
      c.beginPath();
      c.moveTo(gutter, y + band.height);
      path(c, mean, y + 3, height, top, true);
      c.lineTo(gutter + width, y + band.height);
      c.fillStyle = theme[color];
      c.fill();
    }
    c.beginPath();
    path(c, max, y + 3, height, top, false);
    c.strokeStyle = color === 'runnable' ? theme.runnableLine : theme[color];
    c.lineWidth = 1;
    c.stroke();
  });
  c.font = '10px system-ui, sans-serif';
  c.fillStyle = theme.weak;
  c.textAlign = 'right';
  c.fillText(count(top), gutter - 6, y + 6);
  c.fillText('0', gutter - 6, y + band.height - 4);
  c.textAlign = 'left';
}

let image: ImageData | null = null;

/** The ring of a P, above its lane. As pixels: a path of thousands of points for each P takes longer than the lanes. */
export function drawRing(timeline: Timeline, c: CanvasRenderingContext2D, ring: Series, y: number): void {
  const { theme, plotWidth, scale } = timeline;
  const { from, to } = timeline.store.state;
  const width = Math.max(1, Math.floor(plotWidth * scale));
  const height = Math.round(8 * scale);
  if (image?.width !== width || image.height !== height) image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(theme.pagePixel);
  const { max } = ring.envelope(from, to, width);
  const top = Math.max(4, ring.max);
  for (let x = 0; x < width; x++) {
    if (!(max[x]! > 0)) continue;
    const first = height - Math.max(1, Math.round((max[x]! / top) * height));
    for (let at = first * width + x; at < pixels.length; at += width) pixels[at] = theme.queuePixel;
  }
  c.putImageData(image, Math.round(gutter * scale), Math.round(y * scale));
}
