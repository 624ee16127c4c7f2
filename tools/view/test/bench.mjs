// How fast the page is, and how much memory it takes: node test/bench.mjs PAGE. Not a test.
//
// On a busy machine the time that passes says little. So the first drawing is also told in the CPU time of the page's
// main thread, and of each frame the shortest of three drawings counts.
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { drawn, launch } from './browser.mjs';

const file = process.argv[2];
if (!file) throw new Error('usage: node test/bench.mjs PAGE');
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
const session = await page.context().newCDPSession(page);
await session.send('Performance.enable');
const cpu = async () => {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * metrics.find((m) => m.name === 'ThreadTime').value;
};
await page.goto('about:blank');
const before = await cpu();
await page.goto(pathToFileURL(resolve(file)).href, { waitUntil: 'commit' });
await drawn(page);
const first = await page.evaluate(() => performance.getEntriesByName('drawn')[0].startTime);
const firstCpu = (await cpu()) - before;

const span = await page.evaluate(() => gofer.trace.span);
const views = [];
for (let i = 0; i < 100; i++) {
  const half = (span / 2) * 0.87 ** i;
  views.push([span * 0.37 - half, span * 0.37 + half]);
}
for (const zoom of [1, 0.1, 0.01, 0.001, 0.0001]) {
  for (let i = 0; i < 20; i++) {
    const from = span * (0.2 + 0.02 * i * zoom);
    views.push([from, from + span * zoom]);
  }
}
// The browser's own drawing is measured with it: it happens on the main thread, too, when the frame is presented.
const repeat = 5;
const frames = [];
for (const [from, to] of views) {
  const begin = await cpu();
  const wall = await page.evaluate(async ([a, b, times]) => {
    let best = Infinity;
    for (let i = 0; i < times; i++) {
      const start = performance.now();
      gofer.store.show(a, b);
      gofer.draw();
      best = Math.min(best, performance.now() - start);
      await new Promise((done) => requestAnimationFrame(done));
    }
    return best;
  }, [from, to, repeat]);
  frames.push({ cpu: ((await cpu()) - begin) / repeat, wall, span: to - from });
}
await page.evaluate(() => window.gc?.());
const memory = execFileSync('ps', ['-eo', 'rss,args']).toString().split('\n')
  .filter((line) => line.includes('--type=renderer') && !line.includes('--extension-process'))
  .map((line) => Number.parseInt(line, 10) / 1024);
const js = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
const at = (key, part) => {
  const sorted = frames.map((f) => f[key]).sort((a, b) => a - b);
  return sorted[Math.floor(part * (sorted.length - 1))].toFixed(1);
};
const told = (key) => `median ${at(key, 0.5)} ms, p95 ${at(key, 0.95)} ms, longest ${at(key, 1)} ms`;
const { events, slices } = await page.evaluate(() => ({ events: gofer.trace.events, slices: gofer.trace.slices.count }));
console.log(`${events} events, ${slices} slices`);
console.log(`first drawing: ${(first / 1000).toFixed(2)} s; main thread ${(firstCpu / 1000).toFixed(2)} s of CPU`);
console.log(`frames, drawing, shortest of ${repeat}: ${told('wall')}`);
console.log(`frames, CPU of the main thread for two drawings each: ${told('cpu')}`);
if (process.argv.includes('--slow')) {
  for (const f of frames.sort((a, b) => b.cpu - a.cpu).slice(0, 15)) {
    console.log(`  ${f.cpu.toFixed(1)} ms of CPU, ${f.wall.toFixed(1)} ms, at ${(f.span / 1e6).toFixed(3)} ms`);
  }
}
console.log(`memory of the largest renderer: ${Math.max(...memory).toFixed(0)} MB (V8 ${js.toFixed(0)} MB)`);
await browser.close();
