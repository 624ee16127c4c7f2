// What fits the search: goroutines, and slices.
import { useMemo, useState } from 'preact/hooks';
import { count, duration, plural, shortFunction } from '../format';
import { useStore } from './hooks';
import type { PanelProps } from './panel';
import { SliceTable } from './slices';

const shown = 300;

type Order = 'time' | 'late' | 'ran';

export function Matches(props: PanelProps) {
  const { store, theme, timeline } = props;
  const { trace } = store;
  const flags = useStore(store, (s) => s.flags);
  const current = useStore(store, (s) => s.slice);
  const [order, setOrder] = useState<Order>('time');
  const goroutines = useMemo(() => {
    if (!flags) return [];
    const times = new Map<number, { slices: number; ns: number }>();
    const { slices } = trace;
    for (let i = 0; i < slices.count; i++) {
      if (flags[i] === 0) continue;
      const row = slices.g[i]!;
      const entry = times.get(row);
      if (entry) {
        entry.slices++;
        entry.ns += slices.length[i]!;
      } else {
        times.set(row, { slices: 1, ns: slices.length[i]! });
      }
    }
    return [...times].sort((a, b) => b[1].ns - a[1].ns);
  }, [flags]);
  const list = useMemo(() => (flags ? first(flags, order) : []), [flags, order]);

  function first(of: Uint8Array, by: Order): number[] {
    const { start, late, length, count: all } = trace.slices;
    const key: (i: number) => number = by === 'time' ? (i) => start[i]! : by === 'late' ? (i) => -late[i]! : (i) => -length[i]!;
    const found: number[] = [];
    const trim = () => {
      found.sort((a, b) => key(a) - key(b));
      if (found.length > shown) found.length = shown;
    };
    let worst = Infinity;
    for (let i = 0; i < all; i++) {
      if (of[i] === 0 || key(i) >= worst) continue;
      found.push(i);
      if (found.length < shown * 8) continue;
      trim();
      worst = key(found[found.length - 1]!);
    }
    trim();
    return found;
  }

  if (!flags) return <p class="empty">Search for a function, a goroutine or a reason in the field above, or for late&gt;1ms.</p>;
  if (list.length === 0) return <p class="empty">No slice fits.</p>;
  return (
    <>
      <div class="column" style={{ flex: '0 0 34%' }}>
        <table class="list">
          <thead>
            <tr>
              <th class="grow">{plural(goroutines.length, 'goroutine')}</th>
              <th class="n">Slices</th>
              <th class="n">Ran</th>
            </tr>
          </thead>
          <tbody>
            {goroutines.slice(0, shown).map(([row, times]) => (
              <tr key={row} data-go onClick={() => store.select(row, -1)}>
                <td class="grow">
                  <span class="swatch" style={{ background: theme.css[timeline.colorOfGoroutine(row)] }} />
                  G{trace.goroutines.id[row]} {shortFunction(trace.functionOf(row))} {trace.nameOf(row)}
                </td>
                <td class="n">{count(times.slices)}</td>
                <td class="n">{duration(times.ns)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div class="column" style={{ flex: '1 1 66%' }}>
        <div class="choices left">
          {(['time', 'late', 'ran'] as const).map((by) => (
            <label key={by}>
              <input type="radio" name="order" checked={order === by} onChange={() => setOrder(by)} />
              {by === 'time' ? 'the first' : by === 'late' ? 'the latest to run' : 'the longest'}
            </label>
          ))}
        </div>
        <SliceTable {...props} list={list} current={current} goroutine />
      </div>
    </>
  );
}
