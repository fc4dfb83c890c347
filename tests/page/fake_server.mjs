// The server's routes with scripted answers, for tests of the page (and to look at it):
//
//   node tests/page/fake_server.mjs FOLDER [PORT]     FOLDER: where cmake/embed.cmake put page.html
//
// What is asked decides what is answered: the first word of the last message names a script below.
// The status is that of a Kimi K3 on a workstation, which moves on with the clock.
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {setTimeout as sleep} from 'node:timers/promises';
import {pathToFileURL} from 'node:url';

const layerCount = 93;
const seed = '12345678901234567890';  // more digits than a Number has

// --- scripts: async generators of events, [comment] or {delta...} ---

const words = (text) => text.match(/\S+\s*|\s+/g) ?? [];

const markdownAnswer =
    `The **delta rule** writes into a memory matrix *S* only what the memory gets wrong:

1. Forget a little: \`S ← decay · S\`.
2. Compare what the key reads, $k^T S$, with the value.
3. Write the difference back.

\`\`\`cpp
// One decode step, for one head.
for (size_t i = 0; i < key_dim; ++i) {
  state[i] = std::fma(key[i], beta * error, state[i]);
}
\`\`\`

### What it costs

| step | reads | writes |
|---|---:|---:|
| forget | 64 kB | 64 kB |
| write | 64 kB | 64 kB |

- Bits do not depend on \`thread_count\`, see [the page](https://example.org/numerics).
- <img src=x onerror="document.title='owned'"> is text.
- [this](javascript:alert(1)) is no link.

> The state has the same size after one token and after a million.`;

const call = (index, name, text) =>
    ({index, id: `call_${index}`, type: 'function', function: {name, arguments: text}});

const scripts = {
  async *
      default({pace}) {
        yield ': prefill 0/2048';
        await pace(300);
        yield ': prefill 512/2048 eta 40s';
        await pace(600);
        yield ': prefill 1536/2048 eta 12s';
        await pace(300);
        for (
            const word of words(
                'The user asks about the delta rule. I should say what is written, then give the step as code, and say what it costs. ' +
                'Let me be exact about the order: forget, read, write. '.repeat(4))) {
          yield {reasoning_content: word};
          await pace(20);
        }
        for (const word of words(markdownAnswer)) {
          yield {content: word};
          await pace(12);
        }
      },
  async *
      hello({pace}) {
        yield {content: 'Hello. '};
        await pace(20);
        yield {content: 'What shall we compute?'};
      },
  async *
      slow({pace}) {
        yield ': prefill 64/64';
        for (let i = 1; i <= 40; ++i) {
          yield {content: `word${i} `};
          await pace(150);
        }
      },
  // Until somebody stops it.
  async *
      endless({pace}) {
        for (const word of words('Thinking about this one for long. '))
          yield {reasoning_content: word};
        for (let i = 1;; ++i) {
          yield {reasoning_content: `step ${i}. `};
          await pace(60);
        }
      },
  async *
      waiting({pace}) {
        yield ': queued';
        await pace(900);
        yield ': prefill 512/2048 eta 40s';
        await pace(3000);
        yield {content: 'At last.'};
      },
  async *
      failing({pace}) {
        yield {content: 'So far so good'};
        await pace(50);
        yield {
          error: {
            message:
                'model-00042-of-000093.safetensors: read of 4194304 bytes at 81920 failed: Input/output error',
            type: 'server_error',
            param: null,
            code: null
          }
        };
      },
  // The connection breaks once in the middle; the answer goes on without it.
  async *
      breaking({pace, breakOff}) {
        for (let i = 1; i <= 12; ++i) {
          yield {content: `part${i} `};
          if (i === 5) breakOff();
          await pace(60);
        }
      },
  // Whole, as our server sends them, and in pieces, as others do.
  async *
      tool({pace}) {
        for (const word of words('I need the weather of two towns. '))
          yield {reasoning_content: word};
        await pace(20);
        yield {content: 'Let me look.'};
        yield {
          tool_calls: [call(0, 'get_weather', '{"town":"Reykjavík","days":3,"units":["°C","m/s"]}')]
        };
        yield {tool_calls: [call(1, 'search_the_archive_of_all_measurements', '{"query":"')]};
        await pace(50);
        yield {tool_calls: [{index: 1, function: {arguments: `${'wind '.repeat(60)}<b>"}`}}]};
        yield {
          tool_calls:
              [{...call(2, 'broken', '{"raw":"{town:"}'), error: 'expected a string at byte 1'}]
        };
        yield {finish: 'tool_calls'};
      },
  async *
      length() {
        yield {content: 'This is where it'};
        yield {finish: 'length'};
      },
};

const refusals = {
  full: [
    429, {
      message: '64 requests wait already',
      type: 'rate_limit_error',
      param: null,
      code: 'queue_full'
    },
    {'Retry-After': '30'}
  ],
  levels: [
    400, {
      message: 'reasoning_effort: the template qwen3 has no levels',
      type: 'invalid_request_error',
      param: 'reasoning_effort',
      code: 'unsupported_value'
    }
  ],
  long: [
    400, {
      message:
          'the prompt has 300000 tokens, and a context of 262144 leaves no room for the answer\n  ask for less, or start the server with a larger --context',
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded'
    }
  ],
};

// --- one request ---

class Generation {
  constructor(id, script, options) {
    this.id = id;
    this.events = [];  // text of data events; what ?after= counts
    this.readers = new Set();
    this.ended = this.cancelled = false;
    this.work = this.run(script, options);
  }
  push(text, isEvent) {
    if (isEvent) this.events.push(text);
    for (const reader of this.readers) reader.write(text);
  }
  event(fields) {
    const json = JSON.stringify({
      id: `chatcmpl-${this.id}`,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'kimi-k3',
      ...fields,
      deltafin: {mode: 'sample', seed: 'SEED'}
    });
    this.push(`data: ${json.replace('"SEED"', seed)}\n\n`, true);
  }
  async run(script, {speed, include_usage}) {
    let tokens = 0, reasoning = 0, finish = 'stop', failed = false;
    this.event(
        {choices: [{index: 0, delta: {role: 'assistant'}, finish_reason: null}], usage: null});
    const tools = {
      pace: (ms) => sleep(ms / speed),
      breakOff: () => this.readers.forEach((reader) => reader.destroy()),
    };
    for await (const step of script(tools)) {
      if (this.cancelled) break;
      if (typeof step === 'string')
        this.push(`${step}\n\n`, false);
      else if (step.error) {
        this.push(`data: ${JSON.stringify(step)}\n\n`, true);
        failed = true;
      } else if (step.finish)
        finish = step.finish;
      else {
        ++tokens;
        if (step.reasoning_content) ++reasoning;
        this.event({choices: [{index: 0, delta: step, finish_reason: null}], usage: null});
      }
    }
    if (this.cancelled) {
      this.push(
          `data: ${JSON.stringify({
            error: {message: 'cancelled', type: 'cancelled', param: null, code: 'cancelled'}
          })}\n\n`,
          true);
      failed = true;
    }
    if (!failed) {
      this.event({choices: [{index: 0, delta: {}, finish_reason: finish}], usage: null});
      if (include_usage)
        this.event({
          choices: [],
          usage: {
            prompt_tokens: 2048,
            completion_tokens: tokens,
            total_tokens: 2048 + tokens,
            prompt_tokens_details: {cached_tokens: 1536},
            completion_tokens_details: {reasoning_tokens: reasoning}
          }
        });
      this.push('data: [DONE]\n\n', false);
    }
    this.failed = failed;
    this.ended = true;
    for (const reader of this.readers) reader.end();
  }
  attach(response, after) {
    response.writeHead(200, {'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store'});
    for (const text of this.events.slice(after)) response.write(text);
    if (this.ended) {
      if (!this.failed) response.write('data: [DONE]\n\n');
      return response.end();
    }
    this.readers.add(response);
    response.on('close', () => this.readers.delete(response));
  }
}

// --- the machine ---

function makeStatus(server, seconds) {
  const running = [...server.generations.values()].filter((one) => !one.ended).length;
  if (server.loading !== null)
    return {
      ...emptyStatus(seconds),
      state: 'loading',
      reason: 'Reading the trunk',
      loading: {fraction: server.loading}
    };
  const passed = server.busy ? Math.max(0, seconds - server.lookedAt) : 0,
        time = (server.worked += passed), passSeconds = 3.1;
  server.lookedAt = seconds;
  const inPass = (time % passSeconds) / passSeconds, passes = Math.floor(time / passSeconds);
  const layers = Array.from({length: layerCount}, (_, i) => {
    if (i === 0) return {hits: 0, misses: 0, bytes_read: 0};
    const done = passes + (inPass * layerCount > i ? 1 : 0) + 120;
    // Warmer in the beginning and at the end, as measured.
    const heat = 0.25 + 0.45 * Math.exp(-i / 9) + 0.35 * Math.exp(-(layerCount - i) / 14) +
        0.07 * Math.sin(i * 1.7);
    const used = Math.round(done * 16 * (0.82 + 0.18 * Math.abs(Math.sin(i * 12.9)))),
          hits = Math.round(used * heat);
    return {hits, misses: used - hits, bytes_read: (used - hits) * 17_700_000};
  });
  const wave = 0.74 + 0.13 * Math.sin(time / 5) + 0.06 * Math.sin(time * 1.3);
  server.read += wave * 6.9e9 * passed;
  return {
    version: '0.1.0',
    uptime_seconds: seconds,
    state: server.state,
    reason: server.reason,
    loading: null,
    model: {
      id: 'kimi-k3',
      architecture: 'KimiK3ForConditionalGeneration',
      layers: layerCount,
      parameters_bytes: 1_561e9,
      trunk_bytes: 110e9
    },
    activity: server.busy ? {
      kind: time % 40 < 12 ? 'prefill' : 'decode',
      layer: Math.floor(inPass * layerCount),
      layers: layerCount,
      rows: time % 40 < 12 ? 512 : 3
    } :
                            {kind: 'idle', layer: null, layers: null, rows: null},
    layers,
    disk: {bytes_read: Math.round(server.read), probe_bytes_per_second: 6.9e9},
    memory: {
      budget_bytes: 120e9,
      resident_bytes: 106.4e9 + 1e9 * Math.sin(time / 9),
      parts: {trunk: 64e9, experts: 38.2e9, state: 5.2e9, activations: 3.3e9}
    },
    tokens: {prompt: 18211, cached: 9056, generated: 2310 + Math.floor(time * 0.97)},
    requests: {running: server.busy ? 3 : running, queued: server.busy ? 2 : 0, limit: 4},
    prefix_cache: {states: 7, bytes: 2.15e9},
    passes: 2391 + passes,
  };
}

const emptyStatus = (seconds) => ({
  version: '0.1.0',
  uptime_seconds: seconds,
  model: null,
  activity: {kind: 'idle', layer: null, layers: null, rows: null},
  layers: [],
  disk: {bytes_read: 0, probe_bytes_per_second: null},
  memory: {
    budget_bytes: 120e9,
    resident_bytes: 2e9,
    parts: {trunk: 0, experts: 0, state: 0, activations: 0}
  },
  tokens: {prompt: 0, cached: 0, generated: 0},
  requests: {running: 0, queued: 0, limit: 4},
  prefix_cache: {states: 0, bytes: 0},
  passes: 0,
});

// --- routes ---

export class FakeServer {
  constructor(folder) {
    this.folder = folder;
    this.generations = new Map();
    this.asked = [];  // {method, path, headers, body} of everything but /status
    Object.assign(this, {
      state: 'ready',
      reason: null,
      loading: null,
      garbled: false,
      busy: false,
      key: null,
      speed: 1,
      read: 39.1e12,
      worked: 0,
      lookedAt: Infinity,
      started: Date.now() - 5_231_482
    });
  }
  async listen(port = 0) {
    this.http =
        createServer((request, response) => this.answer(request, response).catch((error) => {
          console.error(error);
          response.destroy();
        }));
    await new Promise((resolve) => this.http.listen(port, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.http.address().port}`;
  }
  close() {
    for (const one of this.generations.values()) one.cancelled = true;
    this.http.closeAllConnections();
    this.http.close();
  }

  async answer(request, response) {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const url = new URL(request.url, 'http://fake'), path = url.pathname,
          route = `${request.method} ${path}`;
    if (path !== '/status')
      this.asked.push({method: request.method, path: request.url, headers: request.headers, body});
    const json = (status, value, headers = {}) => {
      response.writeHead(status, {'Content-Type': 'application/json', ...headers});
      response.end(JSON.stringify(value));
    };

    if (route === 'GET /') {
      response.writeHead(200, {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': readFileSync(`${this.folder}/page.policy`, 'utf8')
      });
      return response.end(readFileSync(`${this.folder}/page.html`));
    }
    if (this.key && request.headers.authorization !== `Bearer ${this.key}`)
      return json(401, {
        error: {
          message: 'Authorization: expected "Bearer" and the API key of this server',
          type: 'invalid_request_error',
          param: null,
          code: 'invalid_api_key'
        }
      });
    if (route === 'GET /status' && this.garbled) return json(200, {state: 'ready'});
    if (route === 'GET /status')
      return json(200, makeStatus(this, (Date.now() - this.started) / 1000));
    if (route === 'GET /v1/models')
      return json(200, {object: 'list', data: [{id: 'kimi-k3', object: 'model'}]});
    if (route === 'POST /v1/chat/completions')
      return this.chat(request, response, JSON.parse(body), json);
    const known = /^\/v1\/requests\/([^/]+)(\/cancel)?$/.exec(path),
          generation = known && this.generations.get(known[1]);
    if (!generation)
      return json(404, {
        error: {
          message: `${route}: no such request`,
          type: 'invalid_request_error',
          param: null,
          code: 'not_found'
        }
      });
    if (known[2]) {
      generation.cancelled = true;
      return json(200, {});
    }
    generation.attach(response, Number(url.searchParams.get('after') ?? 0));
  }

  chat(request, response, body, json) {
    const word = /^\w*/.exec(body.messages.at(-1).content)[0].toLowerCase();
    if (Object.hasOwn(refusals, word)) {
      const [status, error, headers] = refusals[word];
      return json(status, {error}, headers);
    }
    const script = Object.hasOwn(scripts, word) ? scripts[word] : scripts.default;
    const id = request.headers['x-request-id'];
    const generation = new Generation(
        id, script, {speed: this.speed, include_usage: body.stream_options?.include_usage});
    this.generations.set(id, generation);
    generation.attach(response, 0);
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = new FakeServer(process.argv[2]);
  server.busy = true;
  console.log(await server.listen(Number(process.argv[3] ?? 8000)));
}
