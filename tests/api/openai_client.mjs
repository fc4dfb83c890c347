// What a program that uses OpenAI's client gets from a server of ours: tests/api/run_openai_client
// starts it. Any model will do, so nothing here depends on what it says.
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';

const {default: OpenAI} =
    await import(createRequire(`${process.env.OPENAI_FOLDER}/`).resolve('openai'));
const client = new OpenAI({
  baseURL: process.argv[2],
  apiKey: process.env.API_KEY ?? 'none',
  maxRetries: 0,
  timeout: 240000
});
const model = (await client.models.list()).data[0].id;

const tests = [];
const test = (name, run) => tests.push({name, run});

const question = [{role: 'user', content: 'What is the capital of France?'}];
const chat = (fields) => client.chat.completions.create(
    {model, messages: question, max_tokens: 8, temperature: 0, ...fields});
const complete = (fields) => client.completions.create(
    {model, prompt: 'The capital of France is', max_tokens: 8, temperature: 0, ...fields});
const all = async (stream) => {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
};
const joined = (chunks, name) =>
    chunks.map((chunk) => chunk.choices[0]?.delta[name] ?? '').join('');

function checkUsage(usage) {
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(usage.prompt_tokens > 0);
  assert.ok(usage.prompt_tokens_details.cached_tokens <= usage.prompt_tokens);
  assert.ok(usage.completion_tokens_details.reasoning_tokens <= usage.completion_tokens);
}

// The error that `promise` fails with.
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  assert.fail('nothing was refused');
}

async function refuses(
    promise, {kind = OpenAI.BadRequestError, status = 400, param, code, message = /./}) {
  const error = await errorOf(promise);
  assert.ok(error instanceof kind, `${error}`);
  assert.equal(error.status, status);
  if (param !== undefined) assert.equal(error.param, param);
  if (code !== undefined) assert.equal(error.code, code);
  assert.match(error.message, message);
}

test('there is one model', async () => {
  const models = await client.models.list();
  assert.equal(models.data.length, 1);
  assert.equal(models.data[0].object, 'model');
});

test('a chat is answered, the same each time', async () => {
  const answer = await chat();
  assert.match(answer.id, /^chatcmpl-/);
  assert.equal(answer.object, 'chat.completion');
  assert.equal(answer.model, model);
  assert.equal(answer.choices.length, 1);
  assert.equal(answer.choices[0].message.role, 'assistant');
  assert.match(answer.choices[0].finish_reason, /^(stop|length)$/);
  checkUsage(answer.usage);
  assert.ok(answer.usage.completion_tokens <= 8);
  assert.deepEqual((await chat()).choices, answer.choices);
});

test('a stream has the same text, piece by piece', async () => {
  const {message, finish_reason} = (await chat()).choices[0];
  const chunks = await all(await chat({stream: true, stream_options: {include_usage: true}}));
  assert.equal(chunks[0].object, 'chat.completion.chunk');
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(joined(chunks, 'content'), message.content ?? '');
  assert.equal(joined(chunks, 'reasoning_content'), message.reasoning_content ?? '');
  assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  const usage = chunks.pop();
  assert.deepEqual(usage.choices, []);
  checkUsage(usage.usage);
  assert.ok(chunks.every((chunk) => chunk.usage === null));
  const ends = chunks.filter((chunk) => chunk.choices[0].finish_reason !== null);
  assert.deepEqual(ends.map((chunk) => chunk.choices[0].finish_reason), [finish_reason]);
  assert.equal(chunks.at(-1), ends[0]);
});

test('the client puts a stream together', async () => {
  const stream = client.chat.completions.stream({
    model,
    messages: question,
    max_tokens: 8,
    temperature: 0,
    stream_options: {include_usage: true}
  });
  const answer = await stream.finalChatCompletion();
  assert.equal(
      answer.choices[0].message.content ?? '', (await chat()).choices[0].message.content ?? '');
  checkUsage(answer.usage);
});

test('a seed makes several answers that come again', async () => {
  const ask = () => chat({n: 2, seed: 5, temperature: 1.5});
  const answer = await ask();
  assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1]);
  assert.deepEqual((await ask()).choices, answer.choices);
  assert.equal(answer.deltafin.seed, 5);
});

const tools = [{
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather',
    parameters: {type: 'object', properties: {city: {type: 'string'}}, required: ['city']}
  }
}];

test('tools can be offered, and calls have the known shape', async () => {
  const {message, finish_reason} = (await chat({tools, max_tokens: 32})).choices[0];
  for (const call of message.tool_calls ?? []) {
    assert.equal(call.type, 'function');
    assert.notEqual(call.id, '');
    JSON.parse(call.function.arguments);
  }
  if (message.tool_calls) assert.match(finish_reason, /^(tool_calls|length)$/);
  await chat({tools, tool_choice: 'none', parallel_tool_calls: true});
});

test('calls and their results can be sent back', async () => {
  const call = {
    id: 'functions.weather:0',
    type: 'function',
    function: {name: 'weather', arguments: '{"city": "Paris"}'}
  };
  const messages = [
    ...question, {role: 'assistant', content: null, refusal: null, tool_calls: [call]},
    {role: 'tool', tool_call_id: call.id, content: 'sunny'}
  ];
  assert.equal((await chat({messages, tools})).choices.length, 1);
});

test('an answer can be sent back as it came', async () => {
  const {message} = (await chat()).choices[0];
  const again =
      await chat({messages: [...question, message, {role: 'user', content: 'And of Italy?'}]});
  checkUsage(again.usage);
});

test('a chat has logprobs, with bytes and the most probable first', async () => {
  const {logprobs} = (await chat({logprobs: true, top_logprobs: 3})).choices[0];
  assert.ok(logprobs.content.length > 0);
  for (const token of logprobs.content) {
    assert.ok(token.logprob <= 0);
    assert.ok(token.bytes.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256));
    assert.equal(token.top_logprobs.length, 3);
    // Greedy: nothing is more probable.
    assert.equal(token.top_logprobs[0].logprob, token.logprob);
    const sorted = token.top_logprobs.map((other) => other.logprob);
    assert.deepEqual(sorted, [...sorted].sort((a, b) => b - a));
  }
  const chunks = await all(await chat({logprobs: true, top_logprobs: 3, stream: true}));
  assert.deepEqual(
      chunks.flatMap((chunk) => chunk.choices[0].logprobs?.content ?? []), logprobs.content);
});

test('a text goes on, also from ids, several at once, and in a stream', async () => {
  const one = await complete();
  assert.match(one.id, /^cmpl-/);
  assert.equal(one.object, 'text_completion');
  checkUsage(one.usage);
  const {tokens} = await client.post('/tokenize', {body: {text: 'The capital of France is'}});
  assert.equal(tokens.length, one.usage.prompt_tokens);
  const both = await complete({prompt: [tokens, tokens]});
  assert.deepEqual(both.choices.map((choice) => choice.index), [0, 1]);
  assert.deepEqual(
      both.choices.map((choice) => choice.text), [one.choices[0].text, one.choices[0].text]);
  const chunks = await all(await complete({stream: true}));
  assert.equal(chunks.map((chunk) => chunk.choices[0].text).join(''), one.choices[0].text);
  assert.equal(chunks.at(-1).choices[0].finish_reason, one.choices[0].finish_reason);
});

test('an answer ends in front of a stop string', async () => {
  const whole = (await complete()).choices[0].text;
  const stop = [...whole][2];
  if (stop === undefined) return;
  const {text, finish_reason} = (await complete({stop: [stop]})).choices[0];
  assert.equal(text, whole.slice(0, whole.indexOf(stop)));
  assert.equal(finish_reason, 'stop');
});

test('a prompt is scored without generating anything', async () => {
  const prompt = 'The capital of France is Paris';
  const score = () => complete({prompt, echo: true, max_tokens: 0, logprobs: 2});
  const {text, logprobs} = (await score()).choices[0];
  assert.equal(text, prompt);
  assert.equal(logprobs.tokens.join(''), prompt);
  assert.equal(logprobs.token_logprobs[0], null);
  assert.equal(logprobs.top_logprobs[0], null);
  assert.ok(logprobs.token_logprobs.slice(1).every((logprob) => logprob <= 0));
  logprobs.tokens.forEach((token, i) => {
    assert.equal(
        prompt.slice(logprobs.text_offset[i], logprobs.text_offset[i] + token.length), token);
    if (i > 0) assert.equal(logprobs.top_logprobs[i][token], logprobs.token_logprobs[i]);
  });
  assert.deepEqual((await score()).choices[0].logprobs, logprobs);
});

test('what was generated is scored the same', async () => {
  const made = (await complete({echo: true, logprobs: 1, max_tokens: 4})).choices[0];
  const {tokens} = await client.post('/tokenize', {body: {text: made.text}});
  const scored =
      (await complete({prompt: tokens, echo: true, logprobs: 1, max_tokens: 0})).choices[0];
  // A text may have other tokens than those it was made of.
  if (scored.logprobs.tokens.join('|') !== made.logprobs.tokens.join('|')) return;
  assert.deepEqual(scored.logprobs.token_logprobs, made.logprobs.token_logprobs);
});

test('what is refused is named', async () => {
  await refuses(
      chat({temprature: 1}),
      {param: 'temprature', code: 'unknown_parameter', message: /temperature/});
  await refuses(chat({n: 9}), {param: 'n'});
  await refuses(chat({stream: true, top_p: 2}), {param: 'top_p'});
  await refuses(chat({messages: []}), {param: 'messages'});
  await refuses(
      chat({messages: [{role: 'user', content: [{type: 'image_url', image_url: {url: 'data:'}}]}]}),
      {param: 'messages[0].content[0]'});
  await refuses(chat({response_format: {type: 'json_object'}}), {param: 'response_format.type'});
  await refuses(complete({prompt: ''}), {param: 'prompt'});
  await refuses(complete({suffix: 'x'}), {param: 'suffix', code: 'unsupported_parameter'});
  await refuses(complete({max_tokens: 16000000}), {code: 'context_length_exceeded'});
  await refuses(
      chat({model: 'another'}),
      {kind: OpenAI.NotFoundError, status: 404, param: 'model', code: 'model_not_found'});
  await refuses(client.get('/nothing'), {kind: OpenAI.NotFoundError, status: 404});
});

test('an answer that nobody waits for is given up, and the next one comes', async () => {
  const stream = await chat({stream: true, max_tokens: 200});
  for await (const chunk of stream) {
    assert.ok(chunk.id);
    stream.controller.abort();
  }
  const abort = new AbortController();
  const waiting = client.chat.completions.create(
      {model, messages: question, max_tokens: 200}, {signal: abort.signal});
  setTimeout(() => abort.abort(), 50);
  const error = await errorOf(waiting).catch(() => null);  // null: it was faster
  if (error) assert.ok(error instanceof OpenAI.APIUserAbortError, `${error}`);
  assert.equal((await chat()).choices.length, 1);
});

let failed = 0, passed = 0;
for (const {name, run} of tests) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  try {
    await run();
    ++passed;
    console.log(`ok      ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
