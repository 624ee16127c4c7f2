// The keyboard: w a s d as in go tool trace, and the rest that the overlay lists.
import type { Timeline } from '../draw/timeline';
import type { Store, ThemeChoice } from '../state';

const movements: Record<string, [zoom: number, move: number]> = {
  w: [-1, 0], s: [1, 0], a: [0, -1], d: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};
const nextTheme: Record<ThemeChoice, ThemeChoice> = { auto: 'light', light: 'dark', dark: 'auto' };

export function attachKeys(store: Store, timeline: Timeline): () => void {
  const held = new Set<string>();
  let fast = false;
  let frame = 0;
  let last = 0;

  const middle = () => timeline.mouseTime ?? (store.state.from + store.state.to) / 2;
  const step = (seconds: number) => {
    for (const key of held) {
      const [zoom, move] = movements[key]!;
      const speed = (fast ? 3 : 1) * seconds;
      if (zoom !== 0) store.zoom(Math.exp(zoom * 3.2 * speed), middle());
      const { from, to } = store.state;
      if (move !== 0) store.show(from + move * (to - from) * 0.9 * speed, to + move * (to - from) * 0.9 * speed);
    }
  };
  const run = (now: number) => {
    frame = 0;
    if (held.size === 0) return;
    step(Math.min(0.05, (now - last) / 1000));
    last = now;
    frame = requestAnimationFrame(run);
  };

  const sliceOfGoroutine = (direction: number) => {
    const { row, slice, from } = store.state;
    if (row < 0) return;
    const list = timeline.lifeOf(row).slices;
    if (list.length === 0) return;
    const { start } = store.trace.slices;
    let at = slice >= 0 ? list.indexOf(slice) : list.findIndex((s) => start[s]! >= from);
    at = slice >= 0 ? at + direction : Math.max(0, at);
    if (at >= 0 && at < list.length) store.jumpTo(list[at]!);
  };
  const nextMatch = (direction: number) => {
    const { flags, slice, from, to } = store.state;
    if (!flags) return;
    const { start, count } = store.trace.slices;
    const now = slice >= 0 ? start[slice]! : direction > 0 ? from : to;
    let best = -1;
    for (let i = 0; i < count; i++) {
      if (flags[i] === 0 || i === slice) continue;
      const away = (start[i]! - now) * direction;
      // Slices of several Ps may begin at the same time: those come in the order of their numbers.
      if (away < 0 || (away === 0 && (i - slice) * direction < 0)) continue;
      if (best < 0 || away < (start[best]! - now) * direction) best = i;
    }
    if (best >= 0) store.jumpTo(best);
  };
  const escape = () => {
    const { overlay, row, query } = store.state;
    if (overlay) store.set({ overlay: '' });
    else if (row >= 0) store.select(-1, -1, null);
    else if (query) store.search('');
  };
  const actions: Record<string, () => void> = {
    '0': () => store.show(0, store.trace.span),
    f: () => {
      const { slice } = store.state;
      if (slice < 0) return;
      const start = store.trace.slices.start[slice]!;
      const length = Math.max(100, store.trace.slices.length[slice]!);
      store.show(start - length / 2, start + length * 1.5);
    },
    '[': () => sliceOfGoroutine(-1),
    ']': () => sliceOfGoroutine(1),
    n: () => nextMatch(1),
    p: () => nextMatch(-1),
    g: () => store.state.row >= 0 && store.togglePin(store.state.row),
    m: () => store.set({ threads: !store.state.threads }),
    t: () => store.set({ theme: nextTheme[store.state.theme] }),
    l: () => store.set({ overlay: store.state.overlay === 'legend' ? '' : 'legend' }),
    '?': () => store.set({ overlay: store.state.overlay === 'help' ? '' : 'help' }),
    '/': () => document.getElementById('search')?.focus(),
    Escape: escape,
  };
  const down = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    fast = e.shiftKey;
    if (movements[key]) {
      e.preventDefault();
      if (held.has(key)) return;
      held.add(key);
      step(0.05);
      last = performance.now();
      frame ||= requestAnimationFrame(run);
      return;
    }
    const action = actions[key];
    if (!action || e.repeat) return;
    e.preventDefault();
    action();
  };
  const up = (e: KeyboardEvent) => {
    held.delete(e.key.length === 1 ? e.key.toLowerCase() : e.key);
    fast = e.shiftKey;
  };
  const blur = () => held.clear();
  window.addEventListener('keydown', down);
  window.addEventListener('keyup', up);
  window.addEventListener('blur', blur);
  return () => {
    window.removeEventListener('keydown', down);
    window.removeEventListener('keyup', up);
    window.removeEventListener('blur', blur);
  };
}
