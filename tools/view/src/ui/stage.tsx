// The overview and the timeline, with mouse and keys.
import { useEffect, useRef } from 'preact/hooks';
import type { Theme } from '../draw/palette';
import { Timeline, gutter } from '../draw/timeline';
import type { Store } from '../state';
import { Overview } from './overview';
import { attachKeys } from './keys';
import { tooltipOf } from './tooltip';

interface Props {
  store: Store;
  theme: Theme;
  onTimeline: (timeline: Timeline) => void;
}

/** Draws at most once a frame. */
function scheduler(draw: () => void): () => void {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      draw();
    });
  };
}

export function Stage({ store, theme, onTimeline }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLCanvasElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const parts = useRef<{ timeline: Timeline; overview: Overview; redraw: () => void } | null>(null);

  useEffect(() => {
    const timeline = new Timeline(store.trace, store, canvas.current!, theme);
    const overview = new Overview(timeline, strip.current!);
    const draw = () => {
      timeline.draw();
      overview.draw();
    };
    const redraw = scheduler(draw);
    parts.current = { timeline, overview, redraw };
    const size = () => {
      const { clientWidth, clientHeight } = box.current!;
      timeline.resize(clientWidth, clientHeight);
      overview.resize(clientWidth);
      draw();
    };
    const observer = new ResizeObserver(size);
    observer.observe(box.current!);
    size();
    mark();
    const stop = store.subscribe(redraw);
    const keys = attachKeys(store, timeline);
    const mouse = attachMouse(store, timeline, canvas.current!, tip.current!, redraw);
    onTimeline(timeline);
    forTests.draw = draw;
    forTests.timeline = timeline;
    return () => {
      observer.disconnect();
      stop();
      keys();
      mouse();
    };
  }, [store]);

  useEffect(() => {
    if (!parts.current) return;
    parts.current.timeline.theme = theme;
    parts.current.overview.forget();
    parts.current.redraw();
  }, [theme]);

  return (
    <>
      <canvas class="overview" ref={strip} aria-label="The whole trace" />
      <div class="stage" ref={box}>
        <canvas ref={canvas} id="timeline" tabIndex={0} aria-label="Timeline" />
        <div class="tip" ref={tip} hidden />
      </div>
    </>
  );
}

/** Draws a frame at once; and where things are on the canvas. */
export const forTests = { draw: () => {}, timeline: null as Timeline | null };

/** When the timeline was first drawn, for measurements. */
function mark(): void {
  if (performance.getEntriesByName('drawn').length === 0) performance.mark('drawn');
}

function attachMouse(
  store: Store, timeline: Timeline, canvas: HTMLCanvasElement, tip: HTMLDivElement, redraw: () => void,
): () => void {
  let drag: { x: number; y: number; from: number; to: number; scroll: number; choose: boolean; moved: boolean } | null = null;
  const place = (e: MouseEvent) => {
    const rect = canvas.getBoundingClientRect();
    return { x: e.clientX - rect.left, y: e.clientY - rect.top };
  };
  const hover = (x: number, y: number) => {
    timeline.mouseTime = x >= gutter ? timeline.timeAt(x) : null;
    redraw();
    const content = drag ? null : tooltipOf(timeline, timeline.hit(x, y));
    tip.hidden = content === null;
    if (content === null) return;
    tip.replaceChildren(...content);
    const { offsetWidth: w, offsetHeight: h } = tip;
    tip.style.left = `${Math.max(4, x + 16 + w > timeline.width ? x - w - 12 : x + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 18, timeline.height - h - 6))}px`;
  };
  const down = (e: PointerEvent) => {
    if (e.button !== 0) return;
    const { x, y } = place(e);
    const { from, to } = store.state;
    drag = { x, y, from, to, scroll: timeline.scroll, choose: e.shiftKey, moved: false };
    canvas.setPointerCapture(e.pointerId);
    canvas.focus({ preventScroll: true });
  };
  const move = (e: PointerEvent) => {
    const { x, y } = place(e);
    if (drag) {
      if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4) drag.moved = true;
      if (drag.moved && !drag.choose) {
        const shift = ((x - drag.x) / timeline.plotWidth) * (drag.to - drag.from);
        timeline.scroll = drag.scroll - (y - drag.y);
        store.show(drag.from - shift, drag.to - shift);
      }
      timeline.chosen = drag.moved && drag.choose ? [drag.x, x] : null;
    }
    hover(x, y);
  };
  const up = (e: PointerEvent) => {
    const { x, y } = place(e);
    if (drag?.moved && drag.choose) {
      const [a, b] = [timeline.timeAt(drag.x), timeline.timeAt(x)];
      store.show(Math.min(a, b), Math.max(a, b));
    } else if (drag && !drag.moved) {
      click(x, y);
    }
    timeline.chosen = null;
    drag = null;
    redraw();
  };
  const click = (x: number, y: number) => {
    const hit = timeline.hit(x, y);
    if (hit.slice >= 0) return store.select(store.trace.slices.g[hit.slice]!, hit.slice);
    const band = timeline.bandAt(y);
    if (band?.kind === 'g') return store.select(band.row, -1);
    store.select(-1, -1, null);
  };
  const leave = () => {
    timeline.mouseTime = null;
    tip.hidden = true;
    redraw();
  };
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    const { x, y } = place(e);
    const { from, to } = store.state;
    const unit = e.deltaMode === 1 ? 30 : 1;
    if (e.ctrlKey || e.metaKey) {
      store.zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY * unit)) / 180), timeline.timeAt(Math.max(gutter, x)));
    } else {
      const sideways = e.shiftKey ? e.deltaY : e.deltaX;
      if (sideways !== 0) {
        const shift = ((sideways * unit) / timeline.plotWidth) * (to - from);
        store.show(from + shift, to + shift);
      }
      if (!e.shiftKey) timeline.scroll += e.deltaY * unit;
    }
    hover(x, y);
  };
  const double = (e: MouseEvent) => {
    const { x, y } = place(e);
    const hit = timeline.hit(x, y);
    if (hit.slice < 0) return;
    const { slices } = store.trace;
    const start = slices.start[hit.slice]!;
    const length = Math.max(200, slices.length[hit.slice]!);
    store.show(start - length, start + 2 * length);
  };
  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointerleave', leave);
  canvas.addEventListener('wheel', wheel, { passive: false });
  canvas.addEventListener('dblclick', double);
  return () => {
    canvas.removeEventListener('pointerdown', down);
    canvas.removeEventListener('pointermove', move);
    canvas.removeEventListener('pointerup', up);
    canvas.removeEventListener('pointerleave', leave);
    canvas.removeEventListener('wheel', wheel);
    canvas.removeEventListener('dblclick', double);
  };
}
