// A browser that does what the tests of the page ask, and fails them for what no page of ours may
// do.
import {mkdirSync} from 'node:fs';
import {createRequire} from 'node:module';

const require = createRequire(`${process.env.PLAYWRIGHT_FOLDER}/`);
const {chromium} = require('playwright-core');

export const launch = () => chromium.launch(
    {executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage']});

// Opens `base`; gives {page, context, faults}: what went wrong besides the test's own checks.
export async function open(browser, base, options = {}) {
  const context = await browser.newContext({
    viewport: {width: 1440, height: 900},
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options
  });
  const faults = [], origin = new URL(base).origin;
  context.setDefaultTimeout(10000);
  context.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith('data:'))
      faults.push(`asked another server: ${url}`);
  });
  const watch = (page) => {
    page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
    page.on('console', (message) => {
      // Browsers also log what a server refused; that is what the page shows.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        faults.push(`console: ${message.text()}`);
    });
  };
  context.on('page', watch);
  const page = await context.newPage();
  await page.goto(base);
  return {page, context, faults};
}

export async function screenshot(page, name) {
  if (!process.env.SCREENSHOTS) return;
  mkdirSync(process.env.SCREENSHOTS, {recursive: true});
  await page.screenshot({path: `${process.env.SCREENSHOTS}/${name}.png`});
}

// --- what a user does ---

export async function send(page, text) {
  await page.fill('#message', text);
  await page.press('#message', 'Enter');
}
export const lastAnswer = (page) => page.locator('.answer').last();
export const content = (page) => lastAnswer(page).locator('.content');
export async function ended(page, state = 'done', timeout = 10000) {
  await page.locator(`.turn:last-child[data-state="${state}"]`).waitFor({timeout});
}
