// The legend, and the list of keys.
import type { ComponentChildren } from 'preact';
import type { Theme } from '../draw/palette';
import type { Store } from '../state';
import { useStore } from './hooks';

const keys: [string, string][] = [
  ['w  s', 'zoom in, zoom out, around the mouse (with shift: faster)'],
  ['a  d', 'go left, go right (also the arrow keys)'],
  ['wheel', 'scroll the lanes; with ctrl: zoom; with shift: left and right'],
  ['drag', 'move; with shift: choose a stretch of time to zoom to'],
  ['0', 'show the whole trace'],
  ['f', 'zoom to the selected slice'],
  ['click', 'select a slice and its goroutine'],
  ['[  ]', 'previous and next slice of the selected goroutine'],
  ['n  p', 'next and previous slice that fits the search'],
  ['g', 'a lane for the selected goroutine, or no longer one'],
  ['m', 'lanes of threads'],
  ['/', 'search'],
  ['t', 'light, dark, or as the system has it'],
  ['l  ?', 'legend, this list'],
  ['Esc', 'close; then: select nothing; then: search for nothing'],
];

function Mark({ children, kind }: { children: ComponentChildren; kind: string }) {
  return (
    <svg width="34" height="18" viewBox="0 0 34 18" class={`mark ${kind}`} aria-hidden="true">
      {children}
    </svg>
  );
}

function Arrow({ color }: { color: string }) {
  return (
    <Mark kind="arrow">
      <path d="M4 4C16 4 16 13 26 13" fill="none" stroke={color} stroke-width="1.4" />
      <path d="M31 13l-7-3.4v6.8z" fill={color} />
      <circle cx="4" cy="4" r="2.2" fill={color} />
    </Mark>
  );
}

function Bar({ color, height = 14, hatched = false }: { color: string; height?: number; hatched?: boolean }) {
  return (
    <Mark kind="bar">
      <rect x="2" y={16 - height} width="30" height={height} fill={color} />
      {hatched && [4, 12, 20, 28].map((x) => <path key={x} d={`M${x - 2} 16L${x + 6} 2`} stroke="rgb(0 0 0 / 0.35)" stroke-width="2.6" />)}
    </Mark>
  );
}

function Legend({ theme: t }: { theme: Theme }) {
  const rows: [ComponentChildren, ComponentChildren][] = [
    [<Bar color={t.css[1]!} />, 'A goroutine runs on the P. The colour is that of its function; gray ones are of the runtime.'],
    [<Bar color={t.css[1]!} height={8} />, 'Seen from afar: the height says what part of the time the P ran goroutines; the colour is that of the longest slice.'],
    [<Bar color={t.css[1]!} hatched />, 'Hatched: in a system call; on the lane of a goroutine or a thread also: paused.'],
    [<Bar color={t.waiting} height={3} />, 'At the foot of a P: a thread holds it and looks for work. In the middle of a goroutine’s lane: it waits.'],
    [<Bar color={t.runnable} height={10} />, 'Runnable: ready, and waiting for a P. On top: how many goroutines are.'],
    [<Bar color={t.queue} height={6} />, 'The length of a P’s run queue, above its lane (in traces of Gofer).'],
    [<Arrow color={t.wake} />, 'A goroutine was readied here, and ran there.'],
    [<Arrow color={t.create} />, 'A goroutine was created here, and first ran there.'],
    [<Arrow color={t.steal} />, 'Steal: the number is how many goroutines went from one P to the other.'],
    [<Mark kind="m"><path d="M17 3l5 6-5 6-5-6z" fill={t.handOff} /></Mark>, 'Hand-off of the P to another thread.'],
    [<Mark kind="m"><path d="M11 5h12l-6 8z" fill={t.retake} /></Mark>, 'The P was retaken from its thread.'],
    [<Mark kind="m"><path d="M12 3h4v12h-4zM18 3h4v12h-4z" fill={t.pause} /></Mark>, 'A goroutine that computes was paused.'],
    [<Mark kind="m"><rect x="2" y="1" width="30" height="16" fill={t.stop} /><rect x="2" y="1" width="30" height="2" fill={t.stopEdge} /></Mark>, 'The world is stopped: no goroutine runs.'],
    [<Mark kind="m"><rect x="2" y="8" width="30" height="3" fill={t.collection} /></Mark>, 'On the ruler: Go’s garbage collector runs.'],
  ];
  return (
    <>
      <h2>What is what</h2>
      <dl class="terms">
        <dt>G</dt>
        <dd>A goroutine: a function that runs beside others, on a stack of its own.</dd>
        <dt>M</dt>
        <dd>A thread of the system, on which goroutines run.</dd>
        <dt>P</dt>
        <dd>A processor: the right to run goroutines, which a thread must hold, with a queue of runnable ones.</dd>
        <dt>runnext</dt>
        <dd>The place in front of a P’s queue: a goroutine that was just readied there runs next.</dd>
        <dt>stealing</dt>
        <dd>A P that has nothing to run takes half of the queue of another.</dd>
        <dt>hand-off</dt>
        <dd>The P of a thread that blocks in a system call is given to another thread, so that the others can run on.</dd>
      </dl>
      <h2>Colours and marks</h2>
      <table class="legend">
        <tbody>
          {rows.map(([mark, text], i) => (
            <tr key={i}>
              <td>{mark}</td>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Help() {
  return (
    <>
      <h2>Keys</h2>
      <table class="keys">
        <tbody>
          {keys.map(([key, meaning]) => (
            <tr key={key}>
              <td>{key.split('  ').map((k) => <kbd key={k}>{k}</kbd>)}</td>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function Overlay({ store, theme }: { store: Store; theme: Theme }) {
  const overlay = useStore(store, (s) => s.overlay);
  if (!overlay) return null;
  return (
    <div class="veil" onClick={() => store.set({ overlay: '' })}>
      <div class="overlay" role="dialog" onClick={(e) => e.stopPropagation()}>
        <button class="close" aria-label="Close" onClick={() => store.set({ overlay: '' })}>
          ×
        </button>
        {overlay === 'help' ? <Help /> : <Legend theme={theme} />}
      </div>
    </div>
  );
}
