// What a user of the page sees and does, in a real browser against tests/page/fake_server.mjs, or
// against the server of the URL that is given. tests/page/run starts it.
import assert from 'node:assert/strict';
import {setTimeout as sleep} from 'node:timers/promises';

import {content, ended, lastAnswer, launch, open, screenshot, send} from './browser.mjs';
import {FakeServer} from './fake_server.mjs';

const realBase = process.argv[2];
const tests = [];
// Those of `anyServer` need nothing of the fake one; they get as much time as a real model needs.
const test = (name, run, options = {}) =>
    tests.push({name, run, options: {anyServer: false, ...options}});
const anyServer = {
  anyServer: true
};
const patience = realBase ? 240000 : 10000;

const text = async (locator) => (await locator.innerText()).trim().replaceAll('\u00a0', ' ');
// Until `check` does not throw.
async function eventually(check, milliseconds = 6000) {
  for (const end = Date.now() + milliseconds;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(40);
    }
  }
}
const numbered = (word, count) =>
    Array.from({length: count}, (_, i) => `${word}${i + 1}`).join(' ');
const kept = (page) =>
    page.evaluate(() => JSON.parse(localStorage.getItem('deltafin.conversation')));

// --- any server ---

test('an answer comes, and with it what it cost', async ({page}) => {
  await send(page, 'Hello');
  await ended(page, 'done', patience);
  assert.notEqual(await text(lastAnswer(page)), '');
  assert.match(await text(page.locator('.meta')), /prompt tokens?.* generated/);
  assert.equal(await text(page.locator('#send')), 'Send');
}, anyServer);

test('a conversation survives a reload, and New chat forgets it', async ({page}) => {
  await send(page, 'Hello');
  await ended(page, 'done', patience);
  const before = await text(page.locator('#log'));
  await page.reload();
  assert.equal(await text(page.locator('#log')), before);
  await page.click('#new-chat');
  assert.equal(await page.locator('.turn').count(), 0);
  await page.reload();
  assert.equal(await page.locator('.turn').count(), 0);
}, anyServer);

test('what the server refuses is shown with what to do, and can be tried again', async ({page}) => {
  await page.click('#open-settings');
  await page.fill('[name=max_tokens]', '9000000');
  await page.click('#settings-form .send');
  await send(page, 'long, this one');
  await ended(page, 'failed', patience);
  // In the page's words: those of the server are for programs.
  assert.match(await text(page.locator('.error')), /^The prompt .* context of [^]*\. /);
  assert.doesNotMatch(await text(page.locator('.error')), /--context/);
  assert.equal(await page.locator('.error button', {hasText: 'Try again'}).count(), 1);
  await screenshot(page, 'refused');
}, anyServer);

test('the machine says what it is and that it is ready', async ({page}) => {
  await eventually(
      async () => assert.match(await text(page.locator('#lamp')), /Ready|Degraded/), patience);
  assert.match(await text(page.locator('#model-facts')), /\d+ layers · .*[MGT]B of weights/);
  assert.match(await text(page.locator('#memory-sum')), /in use of/);
  assert.ok((await page.locator('#strip > i').count()) > 0);
}, anyServer);

test('a reload during an answer loses nothing of it', async ({page, server}) => {
  await send(page, 'slow, please: count');
  await content(page)
      .getByText('word6')
      .or(page.locator('.turn[data-state="done"]'))
      .first()
      .waitFor({timeout: patience});
  await page.reload();
  await ended(page, 'done', patience);
  assert.notEqual(await text(content(page)), '');
  if (!server) return;
  assert.equal(await text(content(page)), numbered('word', 40));
  const again = server.asked.filter((one) => one.path.startsWith('/v1/requests/'));
  assert.match(again[0].path, /\?after=\d+$/);
  assert.ok(Number(again[0].path.split('=')[1]) >= 5, again[0].path);
  assert.equal(server.asked.filter((one) => one.method === 'POST').length, 1);
}, anyServer);

// Hot enough to go on and on; the scripts do so by themselves. A small model may end at once with
// one seed, and not with another.
async function sendSomethingEndless(page) {
  for (let seed = 1; seed <= 8; ++seed) {
    await page.click('#new-chat');
    await page.click('#open-settings');
    await page.fill('[name=temperature]', '5');
    await page.fill('[name=seed]', String(seed));
    await page.click('#settings-form .send');
    await send(page, 'endless: Write a very long story.');
    await lastAnswer(page)
        .locator('.thought:visible, .content:visible')
        .filter({hasText: /.{80}/})
        .or(page.locator('.turn[data-state="done"]'))
        .first()
        .waitFor({timeout: patience});
    if (await page.locator('.turn[data-state="running"]').count()) return;
  }
  assert.fail('no answer is long enough');
}

test('Stop ends an answer, keeps what came and tells the server', async ({page, server}) => {
  await sendSomethingEndless(page);
  await page.click('#send.stop');
  await ended(page, 'stopped', patience);
  assert.match(await text(page.locator('.meta')), /^Stopped/);
  assert.notEqual(await text(lastAnswer(page)), '');
  const after = await text(lastAnswer(page));
  await sleep(300);
  assert.equal(await text(lastAnswer(page)), after);
  if (server) await eventually(() => assert.ok([...server.generations.values()][0].ended));
}, anyServer);

// --- the chat ---

test(
    'reasoning is shown while it comes, and folds away when the answer begins',
    async ({page, server}) => {
      server.speed = 0.3;  // so that a busy machine sees it think
      await send(page, 'What does the delta rule write?');
      const reasoning = lastAnswer(page).locator('details');
      await reasoning.getByText('The user asks').waitFor();
      assert.equal(await reasoning.evaluate((one) => one.open), true);
      assert.match(await text(reasoning.locator('summary')), /^Thinking · \d:\d\d$/);
      const early = (await reasoning.innerText()).length;
      await eventually(async () => assert.ok((await reasoning.innerText()).length > early + 40));
      await content(page).getByText('delta rule').waitFor();
      assert.equal(await reasoning.evaluate((one) => one.open), false);
      assert.match(await text(reasoning.locator('summary')), /^Thought for/);
      await ended(page);
      await reasoning.locator('summary').click();
      assert.equal(await reasoning.evaluate((one) => one.open), true);
    });

test('while the prompt is read, its progress is shown', async ({page}) => {
  await send(page, 'waiting is fine');
  const progress = lastAnswer(page).locator('.progress');
  await progress.getByText('Waiting in the queue').waitFor();
  await progress.getByText('Reading the prompt: 512 of 2,048 tokens, about 40 s more').waitFor();
  assert.equal(await progress.locator('i').evaluate((bar) => bar.style.width), '25%');
  await ended(page);
  assert.equal(await progress.isVisible(), false);
});

test('Markdown is shown as such, and no text of a model becomes markup', async ({page}) => {
  await send(page, 'What does the delta rule write?');
  await ended(page);
  const answer = content(page);
  for (const [tag, count] of [
           ['strong', 1], ['em', 1], ['ol > li', 3], ['ul > li', 3], ['figure.code', 1],
           ['table td', 6], ['h5', 1], ['blockquote', 1]])
    assert.equal(await answer.locator(tag).count(), count, tag);
  assert.match(
      await answer.locator('figure pre').innerText(),
      /^\/\/ One decode step[^]*\n {2}state\[i\] = std::fma\(.*\n}$/);
  assert.equal(await answer.locator('img, script, iframe').count(), 0);
  assert.deepEqual(
      await answer.locator('a').evaluateAll(
          (links) => links.map((link) => [link.href, link.rel, link.target])),
      [['https://example.org/numerics', 'noopener noreferrer', '_blank']]);
  assert.match(
      await answer.innerText(),
      /<img src=x onerror=[^]*\[this\]\(javascript:alert\(1\)\) is no link/);
});

const markdownCases = [
  ['snake_case_name and 2 * 3 * 4', '<p>snake_case_name and 2 * 3 * 4</p>'],
  ['**not closed', '<p>**not closed</p>'],
  ['**bold _and em_** `a * b`', '<p><strong>bold <em>and em</em></strong> <code>a * b</code></p>'],
  ['`` a`b `` \\*plain\\*', '<p><code>a`b</code> *plain*</p>'],
  ['one\ntwo\n\nthree', '<p>one<br>two</p><p>three</p>'],
  ['# One\n## Two', '<h3>One</h3><h4>Two</h4>'],
  ['text\n\n---', '<p>text</p><hr>'],
  ['- a\n  - b\n  - c\n- d', '<ul><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ul>'],
  ['3. three\n4. four', '<ol start="3"><li>three</li><li>four</li></ol>'],
  ['- a\n\n- b', '<ul><li><p>a</p></li><li><p>b</p></li></ul>'],
  ['1. a\n\n   more\n2. b', '<ol><li><p>a</p><p>more</p></li><li><p>b</p></li></ol>'],
  ['> quoted\n> - a', '<blockquote><p>quoted</p><ul><li>a</li></ul></blockquote>'],
  [
    '[a](https://x.org/b_(c)) https://y.org/d.',
    '<p><a href="https://x.org/b_(c)" target="_blank" rel="noopener noreferrer">a</a> ' +
        '<a href="https://y.org/d" target="_blank" rel="noopener noreferrer">https://y.org/d</a>.</p>'
  ],
  [
    '[a](data:text/html,x) <b>&amp;</b>',
    '<p>[a](data:text/html,x) &lt;b&gt;&amp;amp;&lt;/b&gt;</p>'
  ],
];
test('Markdown cases', async ({page}) => {
  const shown = await page.evaluate(
      (sources) => sources.map((source) => {
        const container = document.createElement('div');
        showMarkdown(container, source);
        return container.innerHTML;
      }),
      markdownCases.map(([source]) => source));
  assert.deepEqual(shown, markdownCases.map(([, html]) => html));
});

test('Markdown that comes piece by piece looks like the whole', async ({page}) => {
  const differing = await page.evaluate((sources) => {
    const text = sources.join('\n\n') +
        '\n\n```js\nlet a;\n\n- no list\n```\n\n- a\n\n  ~~~\n  code\n  ~~~\n\nend';
    const growing = document.createElement('div'), differing = [];
    for (let length = 0; length <= text.length; ++length) {
      const whole = document.createElement('div'), part = text.slice(0, length);
      showMarkdown(growing, part);
      showMarkdown(whole, part);
      if (growing.innerHTML !== whole.innerHTML) differing.push(part);
    }
    return differing;
  }, markdownCases.map(([source]) => source));
  assert.deepEqual(differing, []);
});

test('text that looks like endless Markdown is shown without delay', async ({page}) => {
  const milliseconds = await page.evaluate(() => {
    const from = performance.now();
    for (const piece
             of ['**a ', '`', '[', '[a](', '_a', '- ', '> ', '\\n- ', '|-', '#', '~~~\n', ' - a\n'])
      showMarkdown(document.createElement('div'), piece.repeat(20000));
    return performance.now() - from;
  });
  assert.ok(milliseconds < 5000, `${milliseconds} ms`);
});

test('an answer is copied as the model wrote it', async ({page}) => {
  await send(page, 'What does the delta rule write?');
  await ended(page);
  await lastAnswer(page).locator('.meta .copy').click();
  await eventually(
      async () => assert.match(
          await page.evaluate(() => navigator.clipboard.readText()),
          /^The \*\*delta rule\*\*[^]*after a million\.$/));
});

test('Escape stops, Shift+Enter begins a line, Enter sends', async ({page, server}) => {
  await page.focus('#message');
  await page.keyboard.type('endless');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('second line');
  await page.keyboard.press('Enter');
  await lastAnswer(page).getByText('step 3').waitFor();
  assert.equal(JSON.parse(server.asked.at(-1).body).messages[0].content, 'endless\nsecond line');
  await page.keyboard.press('Escape');
  await ended(page, 'stopped');
});

test('a request has an id of its own and asks for a stream with usage', async ({page, server}) => {
  await send(page, 'Hello');
  await ended(page);
  const {headers, body} = server.asked.find((one) => one.method === 'POST');
  assert.match(
      headers['x-request-id'],
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(JSON.parse(body), {
    model: 'kimi-k3',
    messages: [{role: 'user', content: 'Hello'}],
    stream: true,
    stream_options: {include_usage: true}
  });
});

test(
    'the next turn has the last one with its reasoning, but no question that failed',
    async ({page, server}) => {
      await send(page, 'What does the delta rule write?');
      await ended(page);
      await send(page, 'full now');
      await ended(page, 'failed');
      await send(page, 'Hello again');
      await ended(page);
      const {messages} = JSON.parse(server.asked.at(-1).body);
      assert.deepEqual(messages.map((one) => one.role), ['user', 'assistant', 'user']);
      assert.match(messages[1].reasoning_content, /^The user asks/);
      assert.match(messages[1].content, /^The \*\*delta/);
      assert.equal(messages[2].content, 'Hello again');
    });

test('a connection that breaks is taken up again where it broke', async ({page, server}) => {
  await send(page, 'breaking news');
  await lastAnswer(page).getByText('Trying again').waitFor();
  await ended(page);
  assert.equal(await text(content(page)), numbered('part', 12));
  assert.equal(await lastAnswer(page).locator('.trouble').isVisible(), false);
  assert.match(server.asked.at(-1).path, /\?after=\d+$/);
});

test('an error in the middle keeps what came before it', async ({page}) => {
  await send(page, 'failing disk');
  await ended(page, 'failed');
  assert.equal(await text(content(page)), 'So far so good');
  assert.match(await text(page.locator('.error')), /Input\/output error[^]*Try again/);
  await screenshot(page, 'error');
});

test('a full server says when to try again', async ({page}) => {
  await send(page, 'full house');
  await ended(page, 'failed');
  assert.match(
      await text(page.locator('.error')), /64 requests wait already\. Wait 30 s, then try again\./);
});

test('a setting that the server refuses leads to the settings', async ({page}) => {
  await send(page, 'levels');
  await ended(page, 'failed');
  await page.click('.error button:has-text("Open settings")');
  assert.equal(await page.evaluate(() => document.activeElement.name), 'reasoning_effort');
});

test('an answer that somebody else cancelled is one that was stopped', async ({page, server}) => {
  await send(page, 'endless');
  await lastAnswer(page).getByText('step 2').waitFor();
  [...server.generations.values()][0].cancelled = true;
  await ended(page, 'stopped');
  assert.equal(await page.locator('.error').isVisible(), false);
});

test('a question that was refused can be edited', async ({page}) => {
  await send(page, 'long story');
  await ended(page, 'failed');
  await page.click('.error button:has-text("Edit message")');
  assert.equal(await page.inputValue('#message'), 'long story');
  assert.equal(await page.locator('.turn').count(), 0);
});

test(
    'a server that was started again is found, and what it forgot is named',
    async ({page, server}) => {
      await send(page, 'slow, please');
      await content(page).getByText('word3').waitFor();
      const {port} = server.http.address();
      server.close();
      await lastAnswer(page).getByText('Trying again').waitFor();
      await page.locator('#lamp[data-state="unreachable"]').waitFor();
      server.generations.clear();
      Object.assign(server, {started: Date.now()});
      await server.listen(port);
      await ended(page, 'failed');
      assert.match(await text(page.locator('.error')), /no longer has this answer/);
      await page.locator('#lamp[data-state="ready"]').waitFor();
      await page.click('.error button:has-text("Try again")');
      await ended(page, 'done', 20000);
      assert.equal(await text(content(page)), numbered('word', 40));
    });

test('a server that is away is named as such', async ({page, server}) => {
  await page.locator('#lamp[data-state="ready"]').waitFor();
  server.close();
  await send(page, 'Hello');
  await ended(page, 'failed');
  assert.match(await text(page.locator('.error')), /cannot be reached/);
  await page.locator('#lamp[data-state="unreachable"]').waitFor();
});

test('an answer that the server no longer has keeps what had arrived', async ({page, server}) => {
  await send(page, 'slow, please');
  await content(page).getByText('word4').waitFor();
  server.generations.clear();
  await page.reload();
  await ended(page, 'failed');
  assert.match(await text(content(page)), /^word1 word2 word3/);
  assert.match(await text(page.locator('.error')), /no longer has this answer/);
});

test('what does not fit into storage is dropped from the oldest on', async ({page}) => {
  await page.evaluate(() => {
    const answer = () => ({
      id: 'x',
      state: 'done',
      events: 1,
      content: 'answer '.repeat(60000),
      reasoning: '',
      started: 0,
      ended: 1
    });
    localStorage.setItem('deltafin.conversation', JSON.stringify({
      id: 'a',
      turns: ['one', 'two', 'three', 'four'].map((user) => ({user, answer: answer()}))
    }));
  });
  await page.reload();
  await send(page, 'Hello');
  await ended(page);
  await eventually(
      async () => assert.deepEqual(
          (await kept(page)).turns.map((turn) => turn.user), ['two', 'three', 'four', 'Hello']));
  await page.reload();
  assert.equal(await page.locator('#dropped').isVisible(), true);
});

test('a second page of the browser shows the same conversation', async ({page, context, base}) => {
  const second = await context.newPage();
  await second.goto(base);
  await send(page, 'Hello');
  await ended(page);
  await ended(second);
  assert.equal(await text(content(second)), 'Hello. What shall we compute?');
  await second.click('#new-chat');
  await eventually(async () => assert.equal(await page.locator('.turn').count(), 0));
});

test('what an answer cost is told, with the seed that makes it again', async ({page}) => {
  await send(page, 'What does the delta rule write?');
  await ended(page);
  assert.match(
      await text(page.locator('.meta')),
      /^2,048 prompt tokens, 1,536 known · \d+ generated, \d+ of them reasoning · first after [\d.]+ s · [\d.]+ tokens\/s · seed 12345678901234567890/);
});

test('calls of tools are shown with their arguments', async ({page, server}) => {
  await send(page, 'tool, please');
  await ended(page);
  const calls = lastAnswer(page).locator('.call');
  assert.deepEqual(
      await calls.locator('figcaption').allInnerTexts(),
      ['Calls get_weather', 'Calls search_the_archive_of_all_measurements', 'Calls broken']);
  assert.equal(
      await calls.first().locator('pre').innerText(),
      '{\n  "town": "Reykjavík",\n  "days": 3,\n  "units": [\n    "°C",\n    "m/s"\n  ]\n}');
  assert.match(await calls.nth(1).locator('pre').innerText(), /wind wind [^]*<b>"/);
  assert.match(await text(calls.nth(2)), /These are no arguments: expected a string/);
  assert.equal(await text(content(page)), 'Let me look.');
  assert.match(await text(page.locator('.meta')), /^This page has no tools: nothing was called/);
  assert.equal(await lastAnswer(page).locator('details').evaluate((one) => one.open), false);
  await screenshot(page, 'calls');
  // They survive a reload, and go back as they came.
  await page.reload();
  assert.equal(await calls.count(), 3);
  await send(page, 'Hello');
  await ended(page);
  assert.deepEqual(JSON.parse(server.asked.at(-1).body).messages[1].tool_calls[0], {
    id: 'call_0',
    type: 'function',
    function: {name: 'get_weather', arguments: '{"town":"Reykjavík","days":3,"units":["°C","m/s"]}'}
  });
});

test('an answer that ended at max tokens says so', async ({page}) => {
  await send(page, 'length');
  await ended(page);
  assert.match(await text(page.locator('.meta')), /^Cut off at max tokens/);
});

// --- settings ---

test('settings are sent, survive a reload, and wrong ones are not saved', async ({
                                                                            page,
                                                                            server
                                                                          }) => {
  await page.click('#open-settings');
  await page.fill('[name=top_p]', '7');
  await page.click('#settings-form .send');
  assert.match(await text(page.locator('label:has([name=top_p])')), /From 0.0001 to 1/);
  assert.equal(await page.locator('#settings').evaluate((dialog) => dialog.open), true);
  await page.fill('[name=temperature]', '0.6');
  await page.fill('[name=top_p]', '0.95');
  await page.fill('[name=max_tokens]', '4096');
  await page.fill('[name=seed]', '18446744073709551616');
  assert.match(
      await text(page.locator('label:has([name=seed])')), /From 0 to 18446744073709551615/);
  await page.fill('[name=seed]', '18446744073709551615');
  await page.fill('[name=system]', 'Be exact.');
  await page.selectOption('[name=reasoning_effort]', 'high');
  await screenshot(page, 'settings');
  await page.click('#settings-form .send');
  await page.reload();
  assert.equal(
      await text(page.locator('#in-effect')),
      'system prompt, temperature 0.6, top p 0.95, max tokens 4096, effort high, seed 18446744073709551615');
  await send(page, 'Hello');
  await ended(page);
  const body = JSON.parse(server.asked.at(-1).body);
  assert.deepEqual(
      body.messages, [{role: 'system', content: 'Be exact.'}, {role: 'user', content: 'Hello'}]);
  const {temperature, top_p, max_tokens, reasoning_effort} = body;
  assert.deepEqual([temperature, top_p, max_tokens, reasoning_effort], [0.6, 0.95, 4096, 'high']);
  assert.match(server.asked.at(-1).body, /"seed":18446744073709551615}$/);
});

test('a server with a key asks for it, and gets it with every request', async ({page, server}) => {
  server.key = 'secret';
  await page.locator('#lamp[data-state="locked"]').waitFor();
  await page.fill('#key-here', 'secret');
  await page.press('#key-here', 'Enter');
  await page.locator('#lamp[data-state="ready"]').waitFor();
  await send(page, 'Hello');
  await ended(page);
  assert.equal(server.asked.at(-1).headers.authorization, 'Bearer secret');
});

test('colours follow the system, or what was chosen', async ({page}) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({colorScheme: 'light'});
  const light = await paper();
  await page.emulateMedia({colorScheme: 'dark'});
  const dark = await paper();
  assert.notEqual(light, dark);
  await page.click('#theme');
  assert.equal(await paper(), light);
  await page.reload();
  assert.equal(await paper(), light);
  await page.click('#theme');
  await page.emulateMedia({colorScheme: 'light'});
  assert.equal(await paper(), dark);
});

// --- the machine ---

test('the layer that is computed is lit, and moves', async ({page, server}) => {
  server.busy = true;
  const lit = () =>
      page.locator('#strip > i')
          .evaluateAll((all) => all.findIndex((one) => one.classList.contains('lit')));
  await eventually(async () => assert.ok((await lit()) >= 0));
  const first = await lit();
  assert.match(
      await text(page.locator('#doing')), /^(Reading 512 prompt tokens|Generating 3 answers)$/);
  await eventually(async () => assert.notEqual(await lit(), first));
  assert.equal(await page.locator('#strip > i').count(), 93);
});

test('rates are what two answers differ by', async ({page, server}) => {
  server.busy = true;
  await eventually(async () => {
    assert.match(await text(page.locator('#tokens-now')), /^(0\.[89]|1\.[01])/);
    assert.match(await text(page.locator('#disk-now')), /^[456]\.\d\d$/);
  }, 9000);
  assert.match(await text(page.locator('#disk-foot')), /^[6-9]\d % of 6\.90 GB\/s probed$/);
  assert.match(await text(page.locator('#readout')), /^\d\d % from memory \d\d % read from disk$/);
  assert.match(await text(page.locator('#requests-sum')), /^3 of 4 running, 2 waiting$/);
  assert.match(await text(page.locator('#prefix-sum')), /^50 %$/);
  await screenshot(page, 'machine');
});

test('each layer tells its experts to pointer and keyboard', async ({page}) => {
  await page.locator('#lamp[data-state="ready"]').waitFor();
  await page.click('[data-span=start]');
  await page.focus('#strip');
  await page.keyboard.press('End');
  assert.match(
      await text(page.locator('#readout')),
      /^Layer 92: [\d,]+ from memory, [\d,]+ read, [\d.]+ GB$/);
  await page.keyboard.press('Home');
  assert.equal(await text(page.locator('#readout')), 'Layer 0: no experts used');
  await page.hover('#strip', {position: {x: 100, y: 40}});
  assert.match(await text(page.locator('#readout')), /^Layer 2\d: /);
});

test('loading shows how far it is, draining and degraded say why', async ({page, server}) => {
  server.loading = 0.42;
  await page.getByText('Loading 42 %').first().waitFor();
  assert.equal(await page.locator('#loading').getAttribute('aria-valuenow'), '42');
  await screenshot(page, 'loading');
  Object.assign(server, {
    loading: null,
    state: 'degraded',
    reason: 'The state directory is full: answers are not kept over a restart.'
  });
  await page.locator('#lamp[data-state="degraded"]').waitFor();
  assert.match(await text(page.locator('#reason')), /state directory is full/);
  Object.assign(server, {state: 'draining', reason: null});
  await page.locator('#lamp[data-state="draining"]').waitFor();
});

test('a status that makes no sense does not end the asking', async ({page, server}) => {
  await page.locator('#lamp[data-state="ready"]').waitFor();
  server.garbled = true;
  await sleep(1500);
  Object.assign(server, {garbled: false, state: 'draining'});
  await page.locator('#lamp[data-state="draining"]').waitFor();
}, {mayComplain: /TypeError/});

test('nothing is asked while nobody looks', async ({page}) => {
  await page.locator('#lamp[data-state="ready"]').waitFor();
  let asked = 0;
  page.on('request', (request) => (asked += request.url().endsWith('/status')));
  const look = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', {value, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await look(true);
  await sleep(200);
  asked = 0;
  await sleep(2500);
  assert.equal(asked, 0);
  await look(false);
  await eventually(() => assert.ok(asked > 0));
});

// --- how it is made ---

test('the policy forbids markup from text and scripts from elsewhere', async ({page}) => {
  const {policy, wrote} = await page.evaluate(async () => {
    const answer = await fetch('/');
    let thrown = false;
    try {
      document.getElementById('log').innerHTML = '<b>text</b>';
    } catch {
      thrown = true;
    }
    return {policy: answer.headers.get('Content-Security-Policy'), wrote: !thrown};
  });
  assert.ok(!policy.includes('unsafe-inline') && !policy.includes('unsafe-eval'), policy);
  assert.equal(wrote, false);
}, {mayComplain: /TrustedHTML|Trusted/});

test('everything can be reached by keyboard, has a name, and shows where it is', async ({page}) => {
  await page.locator('#lamp[data-state="ready"]').waitFor();
  await page.evaluate(() => {
    const first = document.querySelector('h1');
    first.tabIndex = -1;
    first.focus();
  });
  const reached = [];
  for (let i = 0; i < 14; ++i) {
    await page.keyboard.press('Tab');
    const one = await page.evaluate(() => {
      const at = document.activeElement, style = getComputedStyle(at);
      const name = at.getAttribute('aria-label') || at.labels?.[0]?.textContent || at.textContent;
      return at === document.body ? null : {
        id: at.id || at.dataset.span || at.className,
        name: name.trim(),
        outline: style.outlineStyle
      };
    });
    if (!one) break;
    assert.notEqual(one.name, '', `${one.id} has no name`);
    assert.equal(one.outline, 'solid', `${one.id} does not show that it has the focus`);
    reached.push(one.id);
  }
  for (const id
           of ['theme', 'new-chat', 'open-settings', 'message', 'in-effect', 'send', 'strip',
               'minute', 'start'])
    assert.ok(reached.includes(id), `${id} was not reached, only ${reached}`);
});

test('text has contrast in both colours', async ({page}) => {
  await send(page, 'failing disk');
  await ended(page, 'failed');
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme});
    const weak = await page.evaluate(() => {
      const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
      const luminance =
          ([r, g,
            b]) => [r, g, b]
                       .map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                       .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const backgroundOf = (one) => {
        for (; one; one = one.parentElement) {
          const colour = parse(getComputedStyle(one).backgroundColor);
          if (colour.length === 3 || colour[3] > 0) return colour;
        }
      };
      const weak = [];
      for (const one of document.querySelectorAll('body *')) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !one.checkVisibility({opacityProperty: true})) continue;
        const [a, b] =
            [luminance(parse(getComputedStyle(one).color)), luminance(backgroundOf(one))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5)
          weak.push(`${one.tagName} "${one.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
      }
      return weak;
    });
    assert.deepEqual(weak, [], colorScheme);
  }
});

test('nothing moves for those who asked for that', async ({page, server}) => {
  server.loading = 0.5;
  await page.emulateMedia({reducedMotion: 'reduce'});
  await page.locator('#lamp[data-state="loading"]').waitFor();
  assert.equal(
      await page.locator('#lamp i').evaluate((one) => getComputedStyle(one).animationName), 'none');
});

for (const [size, width, height] of [
         ['desk', 1440, 900], ['laptop', 1280, 800], ['tablet', 834, 1112], ['phone', 390, 844],
         ['small', 320, 640]]) {
  for (const colorScheme of ['light', 'dark']) {
    test(`it fits ${width} x ${height}, ${colorScheme}`, async ({page, server}) => {
      server.busy = true;
      const fits = async () => {
        const [wide, room] =
            await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= room, `${wide} > ${room}`);
        const out = await page.evaluate(
            () => [...document.querySelectorAll(
                       'button, textarea, input, h2, .figure, h3 span, dd, .foot, .readout')]
                      .filter((one) => {
                        const box = one.getBoundingClientRect();
                        const room = one.closest('.legend, .gauge, section, header, main, dialog')
                                         .getBoundingClientRect();
                        return box.width > 0 &&
                            (box.left < -1 || box.right > innerWidth + 1 ||
                             box.right > room.right + 1);
                      })
                      .map((one) => one.id || one.textContent));
        assert.deepEqual(out, []);
      };
      await page.locator('#lamp[data-state="ready"]').waitFor();
      await screenshot(page, `${size}-${colorScheme}-1-empty`);
      await send(page, 'What does the delta rule write into its memory? Show me one step as code.');
      await lastAnswer(page).getByText('Let me be exact').waitFor();
      await fits();
      await screenshot(page, `${size}-${colorScheme}-2-thinking`);
      await ended(page);
      await fits();
      await screenshot(page, `${size}-${colorScheme}-3-answer`);
      if (await page.locator('.views').isVisible()) {
        await page.click('.views [data-shows=machine]');
        await fits();
        await screenshot(page, `${size}-${colorScheme}-4-machine`);
      }
      await page.click('#open-settings');
      await fits();
      assert.equal(await page.locator('#settings .send').isVisible(), true);
    }, {
      browser:
          {viewport: {width, height}, colorScheme, isMobile: width < 800, hasTouch: width < 800}
    });
  }
}

// --- one after the other ---

const browser = await launch();
let passed = 0, failed = 0, other = 0;
for (const {name, run, options} of tests) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  if (realBase && !options.anyServer) {
    ++other;
    continue;
  }
  const server = realBase ? null : new FakeServer(process.env.PAGE_FOLDER);
  const base = realBase ?? (await server.listen());
  let opened = null;
  try {
    opened = await open(browser, base, options.browser);
    await run({...opened, server, base});
    const faults = opened.faults.filter((fault) => !options.mayComplain?.test(fault));
    assert.deepEqual(faults, []);
    ++passed;
    console.log(`ok      ${name}`);
  } catch (error) {
    ++failed;
    // Without the log of the browser's driver.
    console.log(
        `FAILED  ${name}: ${error.message.split('\nCall log:')[0].replaceAll('\n', '\n        ')}`);
    for (const fault of opened?.faults ?? []) console.log(`        ${fault}`);
    if (opened) await screenshot(opened.page, `failed-${failed}`).catch(() => {});
  }
  await opened?.context.close();
  server?.close();
}
await browser.close();
if (other) console.log(`${other} tests need the scripts of the fake server`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
