// How late goroutines ran after they were readied. A bar of the histogram leads to its slices.
import { scaleLog, scalePow } from 'd3-scale';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { barFrom, barOf, barsPerDecade, latencyHistogram, slicesOfBar } from '../data/latency';
import { count, duration, plural } from '../format';
import { useStore } from './hooks';
import type { PanelProps } from './panel';
import { SliceTable } from './slices';

const shown = 200;
const left = 46;
const bottom = 22;

/** The stretch in view, as it was when it last stood still. */
function useView({ store }: PanelProps, inView: boolean): [number, number] {
  const [view, setView] = useState<[number, number]>([store.state.from, store.state.to]);
  useEffect(() => {
    if (!inView) return;
    let timer = 0;
    const read = () => {
      const { from, to } = store.state;
      setView((old) => (old[0] === from && old[1] === to ? old : [from, to]));
    };
    read();
    const stop = store.subscribe(() => {
      window.clearTimeout(timer);
      timer = window.setTimeout(read, 250);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [store, inView]);
  return inView ? view : [0, store.trace.span];
}

export function Latency(props: PanelProps) {
  const { store, theme } = props;
  const { trace } = store;
  const flags = useStore(store, (s) => s.flags);
  const bar = useStore(store, (s) => s.bar);
  const current = useStore(store, (s) => s.slice);
  const [inView, setInView] = useState(false);
  const [from, to] = useView(props, inView);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 520, height: 150 });
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      const { clientWidth, clientHeight } = box.current!;
      setSize({ width: clientWidth - 24, height: clientHeight - 52 });
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const histogram = useMemo(() => latencyHistogram(trace, flags, from, to), [trace, flags, from, to]);
  const list = useMemo(() => (bar < 0 ? [] : slicesOfBar(trace, flags, from, to, bar, shown)), [trace, flags, from, to, bar]);
  const choose = (index: number) => {
    const found = slicesOfBar(trace, flags, from, to, index, 1);
    store.set({ bar: index });
    if (found.length > 0) store.jumpTo(found[0]!);
  };

  const first = Math.max(1, barFrom(Math.max(0, histogram.first - 1)));
  const last = barFrom(histogram.last + 2);
  const x = scaleLog([first, last], [left, Math.max(left + 50, size.width - 8)]);
  const most = Math.max(1, ...histogram.counts);
  // A few very late goroutines must be seen beside a million that were not.
  const y = scalePow([0, most], [Math.max(20, size.height - bottom), 6]).exponent(0.4);
  const bars = [...histogram.counts.keys()].filter((i) => i >= histogram.first && i <= histogram.last);
  const ticks = Array.from({ length: 12 }, (_, i) => 10 ** i).filter((t) => t >= first && t <= last);
  const base = Math.max(20, size.height - bottom);
  return (
    <>
      <div class="column" style={{ flex: '1 1 0', overflow: 'hidden' }} ref={box}>
        <div class="choices">
          <span>
            {plural(histogram.total, 'start')}: median {duration(histogram.p50)} late, 99 % within {duration(histogram.p99)}, at
            most {duration(histogram.max)}
          </span>
          <label>
            <input type="checkbox" checked={inView} onChange={(e) => setInView(e.currentTarget.checked)} />
            only in view
          </label>
        </div>
        <svg class="latency" width={size.width} height={Math.max(40, size.height)}>
          {ticks.map((t) => (
            <g key={t}>
              <line x1={x(t)} x2={x(t)} y1={6} y2={base} stroke={theme.faint} />
              <text x={x(t)} y={base + 15} text-anchor="middle">
                {duration(t)}
              </text>
            </g>
          ))}
          {[1, 0.1, 0.01].map((part) => Math.round(most * part)).filter((n, i, all) => n > 0 && all.indexOf(n) === i).map((n) => (
            <text key={n} x={left - 8} y={y(n) + 4} text-anchor="end">
              {count(n)}
            </text>
          ))}
          {bars.map((i) => {
            const a = x(Math.max(first, barFrom(i)));
            const b = x(barFrom(i + 1));
            const n = histogram.counts[i]!;
            return (
              <g key={i} data-bar={i} onClick={() => n > 0 && choose(i)}>
                <rect class="hit" x={a} y={6} width={Math.max(1, b - a)} height={base - 6} fill="transparent" />
                <rect
                  x={a + 0.5} y={Math.min(y(n), base - (n > 0 ? 2 : 0))} width={Math.max(1, b - a - 1)}
                  height={n > 0 ? Math.max(2, base - y(n)) : 0}
                  fill={i === bar ? theme.accent : theme.runnableLine} pointer-events="none"
                />
                <title>{`${duration(barFrom(i))} to ${duration(barFrom(i + 1))}: ${count(n)}`}</title>
              </g>
            );
          })}
          <line x1={left} x2={size.width - 8} y1={base} y2={base} stroke={theme.weak} />
        </svg>
      </div>
      <div class="column" style={{ flex: '1 1 0' }}>
        {bar < 0 ? (
          <p class="empty">
            Click a bar to see its slices, the latest first. There are {barsPerDecade} bars for each power of ten
            {histogram.max > 0 && (
              <>
                ; the{' '}
                <button class="link" onClick={() => choose(barOf(histogram.max))}>
                  rightmost one
                </button>{' '}
                has the longest delay
              </>
            )}
            .
          </p>
        ) : (
          <SliceTable {...props} list={list} current={current} goroutine />
        )}
      </div>
    </>
  );
}
