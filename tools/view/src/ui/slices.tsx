// A table of slices; a click shows one on the timeline.
import { endInWords } from '../data/life';
import { duration, shortFunction, timeAt } from '../format';
import type { PanelProps } from './panel';

interface Props extends PanelProps {
  list: number[];
  current: number;
  goroutine: boolean; // name the goroutine of each
}

export function SliceTable({ store, theme, timeline, list, current, goroutine }: Props) {
  const { trace } = store;
  const { slices, goroutines } = trace;
  return (
    <table class="list slices">
      <thead>
        <tr>
          <th class="n">Time</th>
          {goroutine && <th>Goroutine</th>}
          <th>P</th>
          <th class="n">Late</th>
          <th class="n">Ran</th>
          <th>Readied by</th>
          <th>Ended</th>
        </tr>
      </thead>
      <tbody>
        {list.map((slice) => {
          const row = slices.g[slice]!;
          const by = slices.by[slice]!;
          const late = slices.late[slice]!;
          return (
            <tr key={slice} data-go class={slice === current ? 'current' : ''} onClick={() => store.jumpTo(slice)}>
              <td class="n">{timeAt(slices.start[slice]!, 1000)}</td>
              {goroutine && (
                <td class="name">
                  <span class="swatch" style={{ background: theme.css[timeline.colorOfGoroutine(row)] }} />
                  G{goroutines.id[row]} {shortFunction(trace.functionOf(row))}
                </td>
              )}
              <td>{trace.procs[trace.laneOf(slice)]}</td>
              <td class="n">{late > 0 ? duration(late - 1) : ''}</td>
              <td class="n">{duration(slices.length[slice]!)}</td>
              <td>{by > 0 ? `G${goroutines.id[by - 1]}` : ''}</td>
              <td class="grow">{endInWords(trace, slices.end[slice]!)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
