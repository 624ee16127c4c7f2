// Colours. All come from OKLCH, in which equal lightness looks equally light, so no function stands out by its colour
// alone.
import { timesByFunction } from '../data/functions';
import type { Trace } from '../data/trace';

function oklch(l: number, c: number, hue: number): [number, number, number] {
  const a = c * Math.cos((hue * Math.PI) / 180);
  const b = c * Math.sin((hue * Math.PI) / 180);
  const l3 = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m3 = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s3 = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const gamma = (x: number) => Math.round(255 * Math.min(1, Math.max(0, x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055)));
  return [
    gamma(4.0767416621 * l3 - 3.3077115913 * m3 + 0.2309699292 * s3),
    gamma(-1.2684380046 * l3 + 2.6097574011 * m3 - 0.3413193965 * s3),
    gamma(-0.0041960863 * l3 - 0.7034186147 * m3 + 1.707614701 * s3),
  ];
}

type Rgb = [number, number, number];
const css = ([r, g, b]: Rgb) => `rgb(${r} ${g} ${b})`;
const pixel = ([r, g, b]: Rgb) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const mix = (a: Rgb, b: Rgb, part: number) => a.map((x, i) => Math.round(x * (1 - part) + b[i]! * part)) as Rgb;

const hues = [252, 152, 62, 318, 205, 98, 22, 285, 178, 340, 80, 232];
export const gray = 0; // the colour of the runtime's own functions, and of those that are not known
export const colorCount = 1 + 2 * hues.length;

export interface Theme {
  dark: boolean;
  css: string[]; // of functions
  fill: Uint32Array;
  hatch: Uint32Array; // the darker stripes of a system call
  edge: Uint32Array; // where a slice begins
  dim: number; // slices that do not fit the search
  lane: number; // of a P that no thread holds
  held: number;
  page: string;
  pagePixel: number;
  laneCss: string;
  text: string;
  weak: string;
  faint: string; // lines
  onSlice: string;
  accent: string;
  runnable: string;
  runnableLine: string;
  syscall: string;
  waiting: string;
  queue: string;
  queuePixel: number;
  globalQueue: string;
  stop: string;
  stopEdge: string;
  collection: string;
  wake: string;
  create: string;
  steal: string;
  handOff: string;
  retake: string;
  pause: string;
}

export function makeTheme(dark: boolean): Theme {
  const colors: Rgb[] = [oklch(dark ? 0.6 : 0.78, 0.008, 250)];
  for (const lower of [0, 0.09]) {
    for (const hue of hues) colors.push(oklch((dark ? 0.68 : 0.8) - lower, dark ? 0.085 : 0.095, hue));
  }
  const back: Rgb = dark ? [27, 28, 31] : [250, 250, 248];
  const lane: Rgb = dark ? [34, 36, 40] : [240, 240, 237];
  const ink: Rgb = dark ? [10, 11, 13] : [20, 22, 26];
  const named = (l: number, c: number, hue: number) => css(oklch(l, c, hue));
  const darker = dark ? 0.34 : 0.24;
  return {
    dark,
    css: colors.map(css),
    fill: Uint32Array.from(colors, pixel),
    hatch: Uint32Array.from(colors, (c) => pixel(mix(c, ink, darker))),
    edge: Uint32Array.from(colors, (c) => pixel(mix(c, ink, dark ? 0.45 : 0.3))),
    dim: pixel(mix(lane, dark ? [255, 255, 255] : [0, 0, 0], dark ? 0.12 : 0.1)),
    lane: pixel(lane),
    held: pixel(mix(lane, dark ? [255, 255, 255] : [0, 0, 0], dark ? 0.17 : 0.15)),
    page: css(back),
    pagePixel: pixel(back),
    laneCss: css(lane),
    text: dark ? '#dcdde0' : '#26282c',
    weak: dark ? '#989ba2' : '#6a6d73',
    faint: dark ? '#383b41' : '#dcdcd7',
    onSlice: dark ? '#0e0f11' : '#17181b',
    accent: named(dark ? 0.75 : 0.52, 0.13, 255),
    runnable: named(dark ? 0.62 : 0.85, dark ? 0.1 : 0.1, 80),
    runnableLine: named(dark ? 0.78 : 0.68, 0.14, 70),
    syscall: named(dark ? 0.5 : 0.72, 0.05, 250),
    waiting: css(mix(lane, dark ? [255, 255, 255] : [0, 0, 0], dark ? 0.14 : 0.12)),
    queue: named(dark ? 0.6 : 0.82, 0.07, 250),
    queuePixel: pixel(oklch(dark ? 0.6 : 0.82, 0.07, 250)),
    globalQueue: named(dark ? 0.75 : 0.55, 0.13, 320),
    stop: dark ? 'rgb(226 92 92 / 0.20)' : 'rgb(214 48 49 / 0.13)',
    stopEdge: named(dark ? 0.68 : 0.58, 0.17, 25),
    collection: named(dark ? 0.6 : 0.75, 0.09, 300),
    wake: named(dark ? 0.74 : 0.5, 0.11, 250),
    create: named(dark ? 0.74 : 0.52, 0.12, 150),
    steal: named(dark ? 0.76 : 0.6, 0.15, 50),
    handOff: named(dark ? 0.74 : 0.55, 0.14, 315),
    retake: named(dark ? 0.7 : 0.58, 0.17, 25),
    pause: named(dark ? 0.75 : 0.6, 0.13, 90),
  };
}

/** The colour of each string as a function: those that ran longest get the first colours. */
export function colorsOfFunctions(trace: Trace): Uint8Array {
  const colors = new Uint8Array(trace.strings.length);
  let next = 0;
  for (const { function: fn } of timesByFunction(trace)) {
    const name = trace.strings[fn]!;
    if (fn === 0 || (name.startsWith('runtime.') && name !== 'runtime.main')) continue;
    colors[fn] = 1 + (next++ % (colorCount - 1));
  }
  return colors;
}
