// Durations, times and names as the page writes them.

const units: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

/** Three digits and a unit. */
export function duration(ns: number): string {
  if (ns <= 0) return '0 ns';
  for (const [scale, name] of units) {
    const value = ns / scale;
    // What rounds up to the next unit belongs to it.
    if (value < 0.9995 && scale !== 1) continue;
    const digits = scale === 1 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return `${value.toFixed(digits)}\u202f${name}`;
  }
  return '0 ns';
}

/** A time with as many digits as a step needs. */
export function timeAt(ns: number, step: number): string {
  const [scale, name] = units.find(([u]) => Math.abs(ns) >= u || u === 1)!;
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale) - Math.log10(step) - 1e-9)));
  return `${(ns / scale).toFixed(digits)}\u202f${name}`;
}

export function count(n: number): string {
  return n.toLocaleString('en').replaceAll(',', '\u202f');
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function percent(part: number): string {
  return part > 0 && part < 0.01 ? '<1\u202f%' : `${Math.round(part * 100)}\u202f%`;
}

/** A function without the folders of its package. */
export function shortFunction(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

const durationPattern = /^([\d.]+)(ns|us|µs|ms|s)?$/;

/** "1.5ms" in nanoseconds; NaN if it is no duration. A number alone is in nanoseconds. */
export function parseDuration(text: string): number {
  const match = durationPattern.exec(text.trim());
  if (!match) return NaN;
  const scale = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[match[2] ?? 'ns'] ?? 1;
  return Number(match[1]) * scale;
}
