// The whole trace on a strip: how busy all Ps together were, and where the view is.
import { gutter, type Timeline } from '../draw/timeline';

const height = 34;

export class Overview {
  private shape: HTMLCanvasElement | null = null;
  private width = 0;

  constructor(
    private readonly timeline: Timeline,
    private readonly canvas: HTMLCanvasElement,
  ) {
    const go = (e: PointerEvent) => {
      if (e.buttons !== 1) return;
      canvas.setPointerCapture(e.pointerId);
      const { store, trace } = this.timeline;
      const { from, to } = store.state;
      const x = e.clientX - canvas.getBoundingClientRect().left;
      const time = ((x - gutter) / (this.width - gutter)) * trace.span;
      // A click outside of a view that is nearly everything would do nothing.
      const length = Math.min(to - from, trace.span / 4);
      store.show(time - length / 2, time + length / 2);
    };
    canvas.addEventListener('pointerdown', go);
    canvas.addEventListener('pointermove', go);
  }

  resize(width: number): void {
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = `${height}px`;
    this.forget();
  }

  /** The colours or the width are others now. */
  forget(): void {
    this.shape = null;
  }

  private drawShape(): HTMLCanvasElement {
    const { trace, theme, cache } = this.timeline;
    const shape = document.createElement('canvas');
    shape.width = this.canvas.width;
    shape.height = this.canvas.height;
    const scale = shape.height / height;
    const c = shape.getContext('2d')!;
    c.scale(scale, scale);
    c.fillStyle = theme.page;
    c.fillRect(0, 0, this.width, height);
    const plot = Math.max(1, this.width - gutter - 8);
    const busy = new Float32Array(Math.ceil(plot));
    for (const band of this.timeline.bands) {
      if (band.kind !== 'p') continue;
      const levels = cache.levelsOf(band);
      const level = levels.findLast((l) => l.busy.length >= plot) ?? levels[0]!;
      for (let x = 0; x < busy.length; x++) {
        const begin = Math.floor((x / plot) * level.busy.length);
        const end = Math.max(begin + 1, Math.floor(((x + 1) / plot) * level.busy.length));
        let sum = 0;
        for (let i = begin; i < end; i++) sum += level.busy[i] ?? 0;
        busy[x]! += sum / (end - begin) / 255 / trace.procs.length;
      }
    }
    c.fillStyle = theme.laneCss;
    c.fillRect(gutter, 4, plot, height - 8);
    c.fillStyle = theme.queue;
    for (let x = 0; x < busy.length; x++) {
      const h = busy[x]! * (height - 8);
      c.fillRect(gutter + x, height - 4 - h, 1, h);
    }
    c.fillStyle = theme.weak;
    c.font = '12px system-ui, sans-serif';
    c.textBaseline = 'middle';
    c.fillText('all', 12, height / 2);
    return shape;
  }

  draw(): void {
    const { store, trace, theme } = this.timeline;
    this.shape ??= this.drawShape();
    const c = this.canvas.getContext('2d')!;
    c.resetTransform();
    c.drawImage(this.shape, 0, 0);
    const scale = this.canvas.height / height;
    c.scale(scale, scale);
    const { from, to } = store.state;
    const plot = Math.max(1, this.width - gutter - 8);
    const x = (time: number) => gutter + (Math.max(0, Math.min(trace.span, time)) / trace.span) * plot;
    const a = x(from);
    const b = Math.max(a + 2, x(to));
    c.fillStyle = theme.page;
    c.globalAlpha = 0.62;
    c.fillRect(gutter, 0, a - gutter, height);
    c.fillRect(b, 0, gutter + plot - b, height);
    c.globalAlpha = 1;
    c.strokeStyle = theme.accent;
    c.lineWidth = 1;
    c.strokeRect(a + 0.5, 3.5, Math.max(1, b - a - 1), height - 7);
  }
}
