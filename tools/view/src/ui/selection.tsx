// One goroutine: its life in a line, its time by state, its slices, and the stacks that belong to the selected one.
import { useEffect, useRef } from 'preact/hooks';
import { endInWords, type Life, type State } from '../data/life';
import type { Trace } from '../data/trace';
import { duration, percent, plural, timeAt } from '../format';
import type { Store } from '../state';
import { useStore } from './hooks';
import type { PanelProps } from './panel';
import { SliceTable } from './slices';

const shownSlices = 200;

function GoroutineLink({ store, row, slice = -1 }: { store: Store; row: number; slice?: number }) {
  return (
    <button class="link" title={store.trace.functionOf(row)} onClick={() => (slice >= 0 ? store.jumpTo(slice) : store.select(row, -1))}>
      G{store.trace.goroutines.id[row]}
    </button>
  );
}

function LifeLine({ store, life }: { store: Store; life: Life }) {
  const { trace } = store;
  const { goroutines, slices } = trace;
  const { row } = life;
  const created = goroutines.created[row]! > 0;
  const ended = goroutines.ended[row]! > 0;
  const creator = goroutines.creator[row]! - 1;
  const places = new Set(life.slices.map((s) => trace.laneOf(s))).size;
  const delay = life.longestDelay;
  const waits = [...life.totals].filter(([key]) => key.startsWith('waiting: ')).sort((a, b) => b[1] - a[1]);
  const ran = life.totals.get('running') ?? 0;
  return (
    <p class="life">
      <strong>G{goroutines.id[row]}</strong> {trace.functionOf(row)}
      {trace.nameOf(row) && ` “${trace.nameOf(row)}”`}{' '}
      {created ? (
        <>
          was created at {timeAt(life.begin, 1000)}
          {creator >= 0 && <> by <GoroutineLink store={store} row={creator} /></>},
        </>
      ) : (
        <>was there when the trace began,</>
      )}{' '}
      ran {duration(ran)} in {plural(life.slices.length, 'slice')}
      {places > 1 && ` on ${places} Ps`}
      {waits[0] && <>, waited {duration(life.totals.get('waiting')!)} (most of it: {waits[0][0].slice(9)})</>}
      {delay >= 0 && (
        <>
          , ran at most{' '}
          <button class="link" onClick={() => store.jumpTo(delay)}>
            {duration(slices.late[delay]! - 1)}
          </button>{' '}
          late
        </>
      )}
      {ended ? `, and ended at ${timeAt(life.end, 1000)}.` : ', and is alive at the end.'}
    </p>
  );
}

const order: State[] = ['running', 'syscall', 'runnable', 'paused', 'waiting'];
const stateNames: Record<State, string> = {
  running: 'running', syscall: 'in system calls', runnable: 'runnable', paused: 'paused', waiting: 'waiting',
};

function Times({ life, theme, timeline }: { life: Life } & PanelProps) {
  const span = Math.max(1, life.end - life.begin);
  const color: Record<State, string> = {
    running: theme.css[timeline.colorOfGoroutine(life.row)]!, syscall: theme.syscall, runnable: theme.runnableLine,
    paused: theme.pause, waiting: theme.waiting,
  };
  const present = order.filter((state) => (life.totals.get(state) ?? 0) > 0);
  const reasons = [...life.totals].filter(([key]) => key.startsWith('waiting: ')).sort((a, b) => b[1] - a[1]).slice(0, 6);
  return (
    <>
      <div class="bars">
        {present.map((state) => (
          <div key={state} style={{ width: `${(100 * life.totals.get(state)!) / span}%`, background: color[state] }} title={stateNames[state]} />
        ))}
      </div>
      <table class="list">
        <tbody>
          {present.map((state) => (
            <tr key={state}>
              <td>
                <span class="swatch" style={{ background: color[state] }} />
                {stateNames[state]}
              </td>
              <td class="n">{duration(life.totals.get(state)!)}</td>
              <td class="n">{percent(life.totals.get(state)! / span)}</td>
            </tr>
          ))}
          {reasons.map(([key, ns]) => (
            <tr key={key}>
              <td style={{ paddingLeft: '17px' }}>{key.slice(9)}</td>
              <td class="n">{duration(ns)}</td>
              <td class="n">{percent(ns / span)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Stack({ trace, number, title }: { trace: Trace; number: number; title: string }) {
  const frames = trace.stack(number);
  if (frames.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ol class="stack">
        {frames.map((frame, i) => (
          <li key={i}>
            {frame.function} <span class="where">{frame.file.slice(frame.file.lastIndexOf('/') + 1)}:{frame.line}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function SliceDetails({ store, slice }: { store: Store; slice: number }) {
  const { trace } = store;
  const { slices, goroutines } = trace;
  const by = slices.by[slice]! - 1;
  const late = slices.late[slice]! - 1;
  const start = slices.start[slice]!;
  const byLane = slices.byLane[slice]! - 1;
  const lane = trace.laneOf(slice);
  const created = goroutines.created[slices.g[slice]!]! - 1 === start - late;
  return (
    <p class="life">
      At {timeAt(start, 1000)} it ran for <strong>{duration(slices.length[slice]!)}</strong> on P {trace.procs[lane]}, M{' '}
      {trace.threads[slices.m[slice]!]}
      {late >= 0 && (
        <>
          , <strong>{duration(late)}</strong> after it was {created ? 'created' : 'readied'}
          {by >= 0 && <> by <GoroutineLink store={store} row={by} slice={runningAt(trace, by, byLane, start - late)} /></>}
          {byLane >= 0 && byLane !== lane && ` on P ${trace.procs[byLane]}`}
        </>
      )}
      {slices.waited[slice]! > 1 && !created && (
        <>
          ; before that it was not runnable for {duration(slices.waited[slice]! - 1)}
          {slices.from[slice]! > 0 && ` (${endInWords(trace, slices.from[slice]!)})`}
        </>
      )}
      . Then: {endInWords(trace, slices.end[slice]!)}.
    </p>
  );
}

/** The slice of a goroutine on a P at a time, or -1. */
function runningAt(trace: Trace, row: number, lane: number, time: number): number {
  if (lane < 0) return -1;
  const { first, start, g } = trace.slices;
  let low = first[lane]!;
  let high = first[lane + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  for (let i = low - 1; i >= Math.max(first[lane]!, low - 3); i--) if (g[i] === row && trace.endTime(i) >= time) return i;
  return -1;
}

export function Selection(props: PanelProps) {
  const { store, timeline } = props;
  const row = useStore(store, (s) => s.row);
  const slice = useStore(store, (s) => s.slice);
  const pinned = useStore(store, (s) => s.pinned.includes(s.row));
  const table = useRef<HTMLDivElement>(null);
  useEffect(() => {
    table.current?.querySelector('tr.current')?.scrollIntoView({ block: 'nearest' });
  }, [slice]);
  if (row < 0) return <p class="empty">Click a slice on the timeline to see the life of its goroutine.</p>;
  const { trace } = store;
  const life = timeline.lifeOf(row);
  const at = Math.max(0, life.slices.indexOf(slice));
  const first = Math.max(0, Math.min(at - shownSlices / 2, life.slices.length - shownSlices));
  const list = life.slices.slice(first, first + shownSlices);
  const { slices, goroutines } = trace;
  return (
    <>
      <div class="column" style={{ flex: '0 0 30%' }}>
        <LifeLine store={store} life={life} />
        <Times life={life} {...props} />
        <p style={{ marginTop: '10px' }}>
          <button onClick={() => store.togglePin(row)}>{pinned ? 'Remove its lane' : 'Show its lane'}</button>{' '}
          <button onClick={() => store.search(`g:${goroutines.id[row]}`, false)}>Dim the others</button>
        </p>
      </div>
      <div class="column" style={{ flex: '1 1 42%' }} ref={table}>
        {slice >= 0 && <SliceDetails store={store} slice={slice} />}
        <SliceTable {...props} list={list} current={slice} goroutine={false} />
        {life.slices.length > list.length && (
          <p class="empty">
            {plural(list.length, 'slice')} of {plural(life.slices.length, 'slice')} around the selected one
          </p>
        )}
      </div>
      <div class="column" style={{ flex: '0 0 28%' }}>
        {slice >= 0 && <Stack trace={trace} number={trace.endStack(slices.end[slice]!)} title="Where the slice ended" />}
        {slice >= 0 && <Stack trace={trace} number={slices.byStack[slice]!} title="Where it was readied" />}
        <Stack trace={trace} number={goroutines.stack[row]!} title="Where it was created" />
      </div>
    </>
  );
}
