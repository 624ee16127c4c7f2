// What the mouse points at, in two or three lines.
import { endInWords } from '../data/life';
import type { Hit, Timeline } from '../draw/timeline';
import { count, duration, plural } from '../format';

function line(text: string, strong = false): HTMLElement {
  const element = document.createElement('div');
  if (strong) element.className = 'strong';
  element.textContent = text;
  return element;
}

export function tooltipOf(timeline: Timeline, hit: Hit): HTMLElement[] | null {
  const { band } = hit;
  if (!band || band.kind === 'title') return null;
  if (band.kind === 'chart') {
    return [
      ...band.series.map((s) => line(`${s.name}: ${count(s.series.at(hit.time))}`, true)),
      line(band.hint),
    ];
  }
  const lines: HTMLElement[] = [];
  if (band.kind === 'g') {
    const segment = timeline.lifeOf(band.row).segments.find((s) => s.begin <= hit.time && hit.time < s.end);
    if (!segment) return null;
    lines.push(line(`${segment.state} for ${duration(segment.end - segment.begin)}`, true));
    if (segment.reason && segment.state === 'waiting') lines.push(line(segment.reason));
    return lines;
  }
  if (hit.slice < 0) return band.ring ? [line(`${band.label}: ${plural(band.ring.at(hit.time), 'goroutine')} in its queue`)] : null;
  lines.push(...sliceLines(timeline, hit.slice));
  if (hit.near > 3) lines.push(line(`and ${plural(hit.near - 1, 'other slice')} right here`));
  if (band.ring) lines.push(line(`${plural(band.ring.at(hit.time), 'goroutine')} in the queue of the P`));
  return lines;
}

function sliceLines(timeline: Timeline, slice: number): HTMLElement[] {
  const { trace } = timeline;
  const { slices, goroutines } = trace;
  const row = slices.g[slice]!;
  const name = trace.nameOf(row);
  const result = [
    line(`G${goroutines.id[row]} ${trace.functionOf(row)}${name ? ` “${name}”` : ''}`, true),
    line(`ran ${duration(slices.length[slice]!)}, then ${endInWords(trace, slices.end[slice]!)}`),
  ];
  if (slices.late[slice]! > 0) {
    const by = slices.by[slice]! > 0 ? ` by G${goroutines.id[slices.by[slice]! - 1]}` : '';
    result.push(line(`${duration(slices.late[slice]! - 1)} after it was readied${by}`));
  }
  return result;
}
