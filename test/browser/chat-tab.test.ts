/** The chat tab in a real browser: answers as Markdown that nobody trusts, and questions that are asked again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { startGateway, until } from '../http/harness.ts';
import { assertUsable } from './axe.ts';
import { browserOfFile, clipboard, openPage, press, status } from './browser.ts';
import { type Piece, startChatDaemon } from './chat-daemon.ts';

const browser = await browserOfFile();

/** A gateway with a scripted daemon, and its chat tab. */
async function openChat(reply: (request: number) => Piece[] | null, options: BrowserContextOptions = {}) {
  const daemon = await startChatDaemon(reply);
  const gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  const opened = await openPage(browser, `${gateway.base}/playground#chat`, options, gateway, daemon);
  await opened.page.getByRole('tabpanel', { name: 'Chat' }).waitFor();
  return { ...opened, asked: daemon.asked };
}

const box = (page: Page) => page.getByLabel('Message', { exact: true });
async function ask(page: Page, text: string) {
  await box(page).fill(text);
  await box(page).press('Enter');
}
const answered = (page: Page) => status(page, 'Done.');
const texts = (page: Page) => page.locator('.bubble').allInnerTexts();
const markdown = (page: Page) => page.locator('.markdown').last();

function gate() {
  let open = () => {};
  const wait = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait, open };
}

const RICH = `# A plan

Take **two** steps, see [the guide](https://example.com/guide?a=1&b=2):

1. \`first\`
2. second
   - [x] done
   - [ ] open

> quoted

#### Code

\`\`\`python
print("<hello>")
\`\`\`

| Model | Words |
| ----- | ----: |
| tiny  | 12    |
`;

test('an answer is rendered as Markdown, and its code and its whole can be copied', async () => {
  await using chat = await openChat(() => RICH.split(/(?<=\n)/));
  const { page } = chat;
  await ask(page, 'Make a *plan*.');
  await answered(page);
  assert.equal(await page.locator('.message.user .bubble').innerText(), 'Make a *plan*.');
  const answer = markdown(page);
  assert.deepEqual(await answer.getByRole('heading').allInnerTexts(), ['A plan', 'Code']);
  assert.deepEqual(
    await answer.locator('h3, h4, h5, h6').evaluateAll((all) => all.map(({ localName }) => localName)),
    ['h3', 'h4'],
  );
  assert.equal(await answer.locator('strong').innerText(), 'two');
  assert.deepEqual(await answer.locator('ol > li > ul > li').allInnerTexts(), ['☑ done', '☐ open']);
  assert.equal(await answer.getByRole('cell').last().innerText(), '12');
  const link = answer.getByRole('link');
  assert.equal(await link.getAttribute('href'), 'https://example.com/guide?a=1&b=2');
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer nofollow');
  assert.equal(await link.getAttribute('target'), '_blank');
  await press(page, 'Copy code');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await clipboard(page), 'print("<hello>")\n');
  await press(page, 'Copy answer');
  await until('the answer is copied', async () => (await clipboard(page)) === RICH);
});

test('hostile Markdown runs nothing, loads nothing, and hides nothing', async () => {
  const hostile = [
    '<script>window.bad = 1</script>',
    '<img src=x onerror="window.bad = 2">',
    '<svg onload="window.bad = 3"><style>body { display: none }</style></svg>',
    '<iframe src="https://example.com/frame"></iframe>',
    '<style>* { visibility: hidden }</style>',
    '<form action="https://example.com"><input name="key"></form>',
    '[one](javascript:window.bad=4) [two](JaVaScRiPt&colon;window.bad=5) [three](data:text/html,bad)',
    '[four](/admin) <javascript:window.bad=6>',
    '![picture](https://example.com/pixel.png) ![a"onerror="bad](x"onerror="window.bad=7)',
    '[five](https://example.com/"onmouseover="window.bad=8)',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.bad=9&gt;">',
    '```"><img src=x onerror=window.bad=10>\ncode\n```',
  ];
  await using chat = await openChat(() =>
    hostile.flatMap((line) => [line.slice(0, 9), line.slice(9), '\n\n']),
  );
  const { page } = chat;
  await ask(page, 'Be bad.');
  await answered(page);
  const answer = markdown(page);
  const shown = await answer.innerText();
  for (const line of hostile.slice(0, 6)) assert(shown.includes(line), `${line} is shown as it was written`);
  assert.equal(await answer.locator('img, svg, style, iframe, script, form, input, math').count(), 0);
  const found = await answer
    .locator('*')
    .evaluateAll((all) =>
      all.flatMap((each) => [...each.attributes].filter(({ name }) => /^on|^style$|^src/.test(name))),
    );
  assert.deepEqual(found, []);
  const links = await answer.locator('a[href]').evaluateAll((all) => all.map((a) => a.getAttribute('href')));
  assert.equal(links[0], 'https://example.com/pixel.png');
  assert(
    links.every((href) => href?.startsWith('https://example.com/')),
    String(links),
  );
  assert.equal(await page.evaluate('window.bad'), undefined);
  assert.equal(await answer.isVisible(), true);
});

test('an answer that nests without end is shown as it was written', async () => {
  const deep = `${'>'.repeat(20_000)} down\n\n${'- '.repeat(5000)}down\n\n${'['.repeat(20_000)}`;
  await using chat = await openChat(() => [deep]);
  await ask(chat.page, 'Go down.');
  await answered(chat.page);
  assert.equal((await markdown(chat.page).textContent())?.trim(), deep);
});

test('a long answer grows without freezing the page, and typing goes on meanwhile', async () => {
  const paragraph = 'Some **bold** words with `code`, a [link](https://example.com) and more of them. ';
  const kinds = ['\n\n', '\n- ', ' ', '\n\n```js\nlet a;\n```\n\n'];
  const long = Array.from({ length: 640 }, (_, i) => `${paragraph}${kinds[Math.floor(i / 160)]}`).join('');
  assert(long.length > 50_000);
  const pieces = long.match(/[\s\S]{1,12}/g) ?? [];
  const { wait, open } = gate();
  await using chat = await openChat(() => [...pieces, { wait }, '\n\nThe end.']);
  const { page } = chat;
  await page.evaluate(`
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: 'longtask' });`);
  await ask(page, 'Tell me all.');
  await page.locator('.markdown .code-block').nth(20).waitFor();
  await box(page).pressSequentially('Meanwhile');
  open();
  await answered(page);
  assert.equal(await box(page).inputValue(), 'Meanwhile');
  assert.equal(await page.locator('.markdown > p').last().innerText(), 'The end.');
  assert((await markdown(page).locator('strong').count()) === 640, 'every part is rendered');
  const longest = await page.evaluate<number>('window.longest');
  assert(longest < 2000, `a task of ${longest} ms`);
});

test('thoughts are in a closed fold, however the daemon sends them, and are not sent along', async () => {
  const answers: Piece[][] = [
    [{ reasoning_content: 'Hmm, ' }, { reasoning_content: 'four.' }, 'It is **4**.'],
    ['<th', 'ink>\nHmm, ', 'five.</thi', 'nk>\n\nIt is **5**.'],
    ['Hmm, six.\n', '</think>\n', 'It is **6**.'],
  ];
  await using chat = await openChat((n) => answers[n - 1] ?? []);
  const { page, asked } = chat;
  for (const [i, thought] of ['Hmm, four.', 'Hmm, five.', 'Hmm, six.'].entries()) {
    await ask(page, 'How much?');
    await page.getByText(`It is ${i + 4}.`).waitFor();
    await answered(page);
    const fold = page.locator('.thought').nth(i);
    await fold.waitFor();
    assert.equal(await fold.getByText(thought).isVisible(), false);
    await fold.getByText('Thinking').click();
    assert.equal(await fold.getByText(thought).isVisible(), true);
  }
  assert.deepEqual(
    asked[2]?.messages.map(({ content }) => content),
    ['How much?', 'It is **4**.', 'How much?', 'It is **5**.', 'How much?'],
  );
});

test('the pace of an answer is told by its usage, or about', async () => {
  const { wait, open } = gate();
  await using chat = await openChat((n) =>
    n === 1 ? ['One ', { wait }, 'two ', 'three.', { usage: { completion_tokens: 301 } }] : ['One ', 'two.'],
  );
  const { page, asked } = chat;
  await ask(page, 'Count.');
  await markdown(page).getByText('One').waitFor();
  await page.waitForTimeout(100); // what is measured is time
  open();
  await answered(page);
  const note = page.locator('.message.assistant .tools .note');
  assert.match(await note.last().innerText(), /^301 tokens · \d+ tokens\/s · first after [\d.]+ s$/);
  assert.deepEqual(asked[0]?.stream_options, { include_usage: true });
  await ask(page, 'Again.');
  await note.nth(1).getByText('about 2 tokens').waitFor();
});

test('the last question can be changed or asked again, and nothing is lost where that fails', async () => {
  await using chat = await openChat((n) => (n === 4 || n === 5 ? null : [`Answer ${n}.`]));
  const { page, asked } = chat;
  await ask(page, 'First?');
  await answered(page);
  await ask(page, 'Second?');
  await page.getByText('Answer 2.').waitFor();
  await answered(page);
  assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 1);
  await press(page, 'Try again');
  await page.getByText('Answer 3.').waitFor();
  await answered(page);
  assert.deepEqual(await texts(page), ['First?', 'Answer 1.', 'Second?', 'Answer 3.']);
  assert.deepEqual(asked[2], asked[1]);

  await press(page, 'Try again');
  await page.getByText('out of luck').waitFor();
  assert.deepEqual(await texts(page), ['First?', 'Answer 1.', 'Second?', 'Answer 3.']);

  await box(page).fill('A draft');
  await press(page, 'Edit');
  assert.equal(await box(page).inputValue(), 'Second?');
  await page.keyboard.press('Escape');
  assert.equal(await box(page).inputValue(), 'A draft');
  await press(page, 'Edit');
  await ask(page, 'Better?');
  await page.getByText('out of luck').waitFor();
  await page.getByText('You are editing your last question.').waitFor();
  assert.deepEqual(await texts(page), ['First?', 'Answer 1.', 'Second?', 'Answer 3.']);
  assert.equal(await box(page).inputValue(), 'Better?');
  await box(page).press('Enter');
  await page.getByText('Answer 6.').waitFor();
  await answered(page);
  assert.deepEqual(await texts(page), ['First?', 'Answer 1.', 'Better?', 'Answer 6.']);
  assert.deepEqual(
    asked[5]?.messages.map(({ content }) => content),
    ['First?', 'Answer 1.', 'Better?'],
  );
  assert.equal(await box(page).inputValue(), 'A draft');
});

test('a system prompt and settings are sent and remembered', async () => {
  await using chat = await openChat(() => ['Yes.']);
  const { page, asked } = chat;
  await ask(page, 'Plain?');
  await answered(page);
  assert.deepEqual(Object.keys(asked[0] ?? {}).sort(), ['messages', 'model', 'stream', 'stream_options']);
  const fold = page.getByText('System prompt and settings');
  await fold.click();
  await page.getByLabel('System prompt', { exact: true }).fill('Be brief.');
  await page.getByLabel('Temperature').fill('0.2');
  await page.getByLabel('Max tokens').fill('64');
  await page.reload();
  await fold.click();
  assert.equal(await page.getByLabel('System prompt', { exact: true }).inputValue(), 'Be brief.');
  await status(page, 'Your conversation is still here.');
  await ask(page, 'And now?');
  await until('it is asked', () => asked.length === 2);
  assert.deepEqual(asked[1]?.messages[0], { role: 'system', content: 'Be brief.' });
  assert.equal(asked[1]?.temperature, 0.2);
  assert.equal(asked[1]?.max_tokens, 64);
});

test('a conversation survives a reload, also in the middle of an answer, and Begin again forgets it', async () => {
  const { wait } = gate();
  await using chat = await openChat(
    (n) => [['<think>Hmm.</think>**One.**'], ['Half', { wait }], ['**Three.**'], [{ wait }]][n - 1] ?? [],
  );
  const { page, asked } = chat;
  await ask(page, 'First?');
  await answered(page);
  await ask(page, 'Second?');
  await page.getByText('Half').waitFor();
  await page.reload();
  await page.locator('.markdown strong').getByText('One.').waitFor();
  assert.deepEqual(await texts(page), ['First?', 'One.', 'Second?', 'Half']);
  await ask(page, 'Third?');
  await page.getByText('Three.').waitFor();
  assert.deepEqual(
    asked[2]?.messages.map(({ content }) => content),
    ['First?', '**One.**', 'Second?', 'Half', 'Third?'],
  );
  await answered(page);
  await ask(page, 'Fourth?');
  await until('it is asked', () => asked.length === 4);
  await page.reload();
  await page.locator('.markdown').nth(2).waitFor();
  assert.equal(
    (await texts(page)).length,
    6,
    'a question without an answer goes back to where it was written',
  );
  await until('it is there', async () => (await box(page).inputValue()) === 'Fourth?');
  await press(page, 'Begin again');
  await page.reload();
  await status(page, 'Write something to begin.');
  assert.deepEqual(await texts(page), []);
});

test('axe-core finds nothing wrong with a conversation', async () => {
  await using chat = await openChat((n) => [{ reasoning_content: 'Let me see.' }, n === 1 ? RICH : 'Yes.']);
  const { page } = chat;
  await ask(page, 'Make a plan.');
  await answered(page);
  await ask(page, 'Is it good?');
  await page.getByText('Yes.').waitFor();
  await answered(page);
  await page.getByText('Thinking').first().click();
  await page.getByText('System prompt and settings').click();
  await press(page, 'Edit');
  await page.locator('#panel-chat .talk').evaluate((talk) => talk.scrollTo(0, 0));
  await assertUsable(page, 'a conversation');
});
