// The pictures of README: node test/screenshots.mjs PAGE FOLDER.
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { drawn, launch } from './browser.mjs';

const [, , file, folder] = process.argv;
if (!folder) throw new Error('usage: node test/screenshots.mjs PAGE FOLDER');
const browser = await launch();

async function picture(name, colorScheme, act) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, colorScheme });
  await page.goto(pathToFileURL(resolve(file)).href);
  await drawn(page);
  await act(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, name) });
  await page.close();
}

await picture('trace-overview.png', 'light', async () => {});
await picture('trace-goroutine.png', 'dark', async (page) => {
  await page.mouse.move(400, 260);
  for (let i = 0; i < 14; i++) await page.keyboard.press('w');
  await page.mouse.click(400, 260);
});
await browser.close();
