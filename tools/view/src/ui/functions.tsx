// Where the time went, by function, with the colours of the timeline.
import { useMemo } from 'preact/hooks';
import { timesByFunction } from '../data/functions';
import { count, duration } from '../format';
import type { PanelProps } from './panel';

export function Functions({ store, theme, timeline }: PanelProps) {
  const { trace } = store;
  const times = useMemo(() => timesByFunction(trace), [trace]);
  const most = Math.max(1, ...times.map((t) => t.running));
  return (
    <div class="column" style={{ flex: '1' }}>
      <table class="list">
        <thead>
          <tr>
            <th class="grow">Function</th>
            <th class="n">Goroutines</th>
            <th class="n">Slices</th>
            <th class="n">Ran</th>
            <th style={{ width: '120px' }} />
            <th class="n">Waited for a P</th>
            <th class="n">Longest delay</th>
          </tr>
        </thead>
        <tbody>
          {times.slice(0, 300).map((t) => {
            const name = trace.strings[t.function] || '(function not known)';
            const color = theme.css[timeline.functionColors[t.function]!];
            return (
              <tr key={t.function} data-go onClick={() => t.function > 0 && store.search(`fn:${name.includes(' ') ? `"${name}"` : name}`)}>
                <td class="grow">
                  <span class="swatch" style={{ background: color }} />
                  {name}
                </td>
                <td class="n">{count(t.goroutines)}</td>
                <td class="n">{count(t.slices)}</td>
                <td class="n">{duration(t.running)}</td>
                <td>
                  <div class="bars" style={{ margin: 0, height: '8px', width: '120px' }}>
                    <div style={{ width: `${(100 * t.running) / most}%`, background: color }} />
                  </div>
                </td>
                <td class="n">{duration(t.runnable)}</td>
                <td class="n">{duration(t.longestDelay)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
