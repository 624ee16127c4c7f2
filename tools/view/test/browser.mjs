// Debian's Chromium, driven by playwright-core, without a network.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const places = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const executable = places.find((path) => path && existsSync(path));

export async function launch() {
  if (!executable) throw new Error('no Chromium: install it (Debian: chromium), or set CHROMIUM to its path');
  return chromium.launch({
    executablePath: executable,
    args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info', '--js-flags=--expose-gc'],
  });
}

/** A folder that is removed at the end. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), 'gofer-view-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function drawn(page) {
  await page.waitForFunction(() => performance.getEntriesByName('drawn').length > 0 && window.gofer, null, {
    timeout: 120_000,
  });
}
