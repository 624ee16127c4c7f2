// The page in a browser. GOFER is the command, SYNTHESISE writes a trace with Gofer's records (make test-web sets both).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { drawn, launch, scratch } from './browser.mjs';

const gofer = process.env.GOFER;
const synthesise = process.env.SYNTHESISE;
assert.ok(gofer && synthesise, 'GOFER and SYNTHESISE must be set: run make test-web');

const folder = scratch();
const data = join(dirname(fileURLToPath(import.meta.url)), '../../../tests/trace/data');
let browser;

before(async () => {
  browser = await launch();
});
after(async () => {
  await browser?.close();
});

/** Opens a page; what it complains about, and what it asks the network for, is collected. */
async function open(file, { width = 1280, height = 800, dark = false, hash = '' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' });
  const page = await context.newPage();
  page.complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.complaints.push(message.text());
  });
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('request', (request) => {
    if (!/^(file|data|blob):/.test(request.url())) page.complaints.push(`asks for ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href + hash);
  await drawn(page);
  return page;
}

async function close(page) {
  assert.deepEqual(page.complaints, []);
  await page.context().close();
}

function view(trace, name) {
  const page = join(folder, `${name}.html`);
  execFileSync(gofer, ['trace', 'view', trace, '-o', page]);
  return page;
}

const state = (page) => page.evaluate(() => {
  const { from, to, row, slice, query, matches, tab, threads, pinned } = window.gofer.store.state;
  return { from, to, row, slice, query, matches, tab, threads, pinned: [...pinned] };
});
const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Where a slice is on the page that is in view, and at least some pixels wide. */
const someSlice = (page) => page.evaluate(() => {
  const { trace, store } = window.gofer;
  const { slices } = trace;
  const lane = trace.procOrder[2];
  const first = slices.first[lane];
  const middle = Math.floor((first + slices.first[lane + 1]) / 2);
  let slice = middle;
  while (slices.length[slice] < 1000 || slices.late[slice] === 0 || trace.goroutines.id[slices.g[slice]] > 50) slice++;
  const center = slices.start[slice] + slices.length[slice] / 2;
  store.show(center - 10 * slices.length[slice], center + 10 * slices.length[slice]);
  const canvas = document.querySelector('#timeline').getBoundingClientRect();
  const label = 92;
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const band = window.gofer.timeline().bands.find((b) => b.kind === 'p' && b.number === lane);
    done({
      slice, id: trace.goroutines.id[slices.g[slice]], x: label + (canvas.width - label) / 2,
      y: canvas.top + window.gofer.timeline().yOf(band) + band.height / 2,
    });
  })));
});

describe('a trace of Gofer', () => {
  const trace = join(folder, 'small.trace');
  let file;
  let page;
  before(() => {
    execFileSync(synthesise, [trace, '60000']);
    file = view(trace, 'small');
  });
  beforeEach(async () => {
    page = await open(file);
  });

  test('has the times that the summary has', async () => {
    const summary = JSON.parse(execFileSync(gofer, ['trace', 'summary', trace, '--json']));
    const expected = summary.ps.map((p) => p.running_ns + p.syscall_ns);
    const shown = await page.evaluate(() => {
      const { trace } = window.gofer;
      const { first, length } = trace.slices;
      return trace.procOrder.map((lane) => length.subarray(first[lane], first[lane + 1]).reduce((a, b) => a + b, 0));
    });
    assert.deepEqual(shown, expected);
    assert.equal(await page.evaluate(() => window.gofer.trace.span), summary.span_ns);
    await close(page);
  });

  test('is drawn in more than one colour', async () => {
    const colors = await page.evaluate(() => {
      const canvas = document.querySelector('#timeline');
      const { data } = canvas.getContext('2d').getImageData(92, 100, canvas.width - 92, 200);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(colors > 6, `${colors} colours`);
    await close(page);
  });

  test('is zoomed and moved by keys and wheel', async () => {
    const whole = await state(page);
    await page.keyboard.press('w');
    const near = await state(page);
    assert.ok(near.to - near.from < 0.95 * (whole.to - whole.from));
    for (let i = 0; i < 8; i++) await page.keyboard.press('w');
    const start = await state(page);
    await page.keyboard.press('d');
    const right = await state(page);
    assert.ok(right.from > start.from);
    await page.keyboard.press('a');
    await page.keyboard.press('a');
    assert.ok((await state(page)).from < right.from);
    await page.mouse.move(700, 300);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -200);
    await page.keyboard.up('Control');
    await page.waitForFunction((span) => window.gofer.store.state.to - window.gofer.store.state.from < span, start.to - start.from);
    await page.keyboard.press('0');
    const back = await state(page);
    assert.ok(back.to - back.from >= whole.to - whole.from);
    await close(page);
  });

  test('is searched', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('fn:parse late>10us');
    await page.waitForFunction(() => window.gofer.store.state.query === 'fn:parse late>10us');
    const expected = await page.evaluate(() => {
      const { trace } = window.gofer;
      const { slices, count } = { slices: trace.slices, count: trace.slices.count };
      let n = 0;
      for (let i = 0; i < count; i++) {
        if (trace.functionOf(slices.g[i]).includes('parse') && slices.late[i] - 1 > 10_000) n++;
      }
      return n;
    });
    assert.ok(expected > 0);
    assert.equal((await state(page)).matches, expected);
    await page.locator('table.slices tbody tr').first().click();
    assert.ok((await state(page)).slice >= 0);
    await page.keyboard.press('n');
    const first = await state(page);
    await page.keyboard.press('n');
    assert.notEqual((await state(page)).slice, first.slice);
    await page.locator('#search').fill('dur>soon');
    await page.locator('.found.error').waitFor();
    await page.locator('#search').fill('');
    await page.waitForFunction(() => window.gofer.store.state.flags === null);
    await close(page);
  });

  test('a click tells the life of a goroutine, and leads on to whichever readied it', async () => {
    const { id, x, y, slice } = await someSlice(page);
    await page.mouse.move(x, y);
    await page.locator('.tip').waitFor();
    assert.match(await page.locator('.tip').innerText(), new RegExp(`G${id} `));
    await page.mouse.click(x, y);
    assert.equal((await state(page)).slice, slice);
    const life = page.locator('.life').first();
    assert.match(await life.innerText(), new RegExp(`^G${id} main\\.\\w+ was created at .* by G1, ran .* in .* slices?`));
    assert.match(await page.locator('#panel').innerText(), /Where it was created/);
    await life.getByRole('button', { name: 'G1', exact: true }).click();
    assert.match(await life.innerText(), /^G1 main\.worker “the first one” was there when the trace began/);
    await page.keyboard.press('g');
    assert.equal((await state(page)).pinned.length, 1);
    await page.keyboard.press('Escape');
    assert.equal((await state(page)).row, -1);
    await close(page);
  });

  test('a link to a place survives', async () => {
    const { id, x, y } = await someSlice(page);
    await page.mouse.click(x, y);
    await page.keyboard.press('g');
    await page.keyboard.press('m');
    await page.evaluate(() => window.gofer.store.search('fn:main.worker -late>1ms', false));
    await page.waitForFunction((g) => location.hash.includes(`g=${g}`) && location.hash.includes('q=fn'), id);
    const old = await state(page);
    await page.reload();
    await drawn(page);
    const now = await state(page);
    assert.ok(Math.abs(now.from - old.from) <= 1 && Math.abs(now.to - old.to) <= 1);
    delete old.from, delete old.to, delete now.from, delete now.to;
    assert.deepEqual(now, old);
    await page.evaluate(() => { location.hash = '#t=1000-5000&g=3'; });
    await page.waitForFunction(() => Math.round(window.gofer.store.state.from) === 1000);
    assert.equal(await page.evaluate(() => window.gofer.trace.goroutines.id[window.gofer.store.state.row]), 3);
    await close(page);
  });

  test('bars of the histogram lead to the timeline', async () => {
    await page.locator('#tab-latency').click();
    const bars = page.locator('svg.latency g[data-bar]');
    await bars.first().waitFor();
    const text = await page.locator('.choices').first().innerText();
    assert.match(text, /median .* late, 99 % within/);
    await bars.last().click();
    const { slice, from, to } = await state(page);
    assert.ok(slice >= 0);
    const [start, late, longest] = await page.evaluate((i) => {
      const { slices } = window.gofer.trace;
      return [slices.start[i], slices.late[i], slices.late.reduce((a, b) => Math.max(a, b), 0)];
    }, slice);
    assert.equal(late, longest);
    assert.ok(from <= start - late + 1 && start <= to);
    await close(page);
  });

  test('is light or dark, as the system is or the user wants', async () => {
    const back = (p) => p.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await back(page);
    await page.keyboard.press('t');
    assert.equal(await back(page), light);
    await page.keyboard.press('t');
    await frame(page);
    const chosen = await back(page);
    assert.notEqual(chosen, light);
    const dark = await open(file, { dark: true });
    assert.equal(await back(dark), chosen);
    await close(dark);
    await close(page);
  });

  test('explains itself', async () => {
    await page.keyboard.press('?');
    assert.match(await page.locator('.overlay').innerText(), /zoom in, zoom out/);
    await page.keyboard.press('Escape');
    await page.keyboard.press('l');
    const legend = await page.locator('.overlay').innerText();
    for (const term of ['G', 'M', 'P', 'runnext', 'stealing', 'hand-off']) assert.match(legend, new RegExp(`^${term}$`, 'm'));
    await page.keyboard.press('Escape');
    assert.equal(await page.locator('.overlay').count(), 0);
    await close(page);
  });

  for (const [width, height] of [[1280, 800], [1920, 1080]]) {
    test(`nothing of the header overlaps or is cut off at ${width} × ${height}`, async () => {
      await page.setViewportSize({ width, height });
      await frame(page);
      const boxes = await page.evaluate(() =>
        [...document.querySelectorAll('header > h1, header > p, header > .search, header button, .tabs button')].map((e) => {
          const { left, right, top, bottom } = e.getBoundingClientRect();
          return { name: e.textContent, left, right, top, bottom, cut: e.scrollWidth > e.clientWidth + 1 };
        }),
      );
      for (const [i, a] of boxes.entries()) {
        assert.ok(a.left >= 0 && a.right <= width && !a.cut, `${a.name} is cut off`);
        for (const b of boxes.slice(i + 1)) {
          const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
          assert.ok(apart, `${a.name} and ${b.name} overlap`);
        }
      }
      assert.equal(await page.evaluate(() => document.documentElement.scrollHeight > innerHeight), false);
      await close(page);
    });
  }
});

describe('traces of Go', () => {
  for (const name of ['channels', 'calls', 'hogs', 'generations']) {
    test(`${name} is shown`, async () => {
      const page = await open(view(join(data, `${name}.trace`), name));
      const found = await page.evaluate(() => {
        const { trace, store } = window.gofer;
        const row = trace.rowOf(1);
        store.select(row, -1);
        store.set({ threads: true, pinned: [row] });
        return trace.functionOf(row);
      });
      await frame(page);
      assert.equal(found, 'main.main');
      assert.match(await page.locator('.life').first().innerText(), /^G1 main\.main/);
      await close(page);
    });
  }

  test('what comes before a damage is shown', async () => {
    const bytes = readFileSync(join(data, 'generations.trace'));
    const broken = join(folder, 'broken.trace');
    writeFileSync(broken, bytes.subarray(0, bytes.length - 100));
    const file = join(folder, 'broken.html');
    assert.equal(spawnSync(gofer, ['trace', 'view', broken, '-o', file]).status, 1);
    const page = await open(file);
    assert.match(await page.locator('.damage').innerText(), /the file ends in a batch/);
    assert.ok(await page.evaluate(() => window.gofer.trace.slices.count) > 0);
    await close(page);
  });
});
