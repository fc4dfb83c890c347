'use strict';
// One answer: from the request that asks for it to its end, through as many connections as that
// takes.
//
// An answer is plain data, so that it can be kept:
//   id          the X-Request-Id that we gave it
//   state       "running", "done", "stopped" or "failed"
//   events      how many data events of its stream are in it
//   content, reasoning   what came so far
//   calls       of tools: {id, name, arguments, error}; none: not there
//   started, reading_ended, thinking_ended, ended   times in ms
//   attached    whether it was ever attached to again, so that its times say nothing
//   usage, finish, seed   what the server said at the end
//   error       {message, advice, action}
// Beside that, while it runs and not kept: progress {done, total, eta} or {queued}, and trouble.

const retryPauses = [1, 2, 4, 8, 15];  // seconds

// crypto.randomUUID is there only for https and localhost.
function newRequestId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes]
      .map((byte, i) => ([4, 6, 8, 10].includes(i) ? '-' : '') + byte.toString(16).padStart(2, '0'))
      .join('');
}

const newAnswer = () => ({
  id: newRequestId(),
  state: 'running',
  events: 0,
  content: '',
  reasoning: '',
  started: Date.now()
});

class Generation {
  // `changed` is called after every change of `answer`.
  constructor(answer, changed) {
    this.answer = answer;
    this.changed = changed;
    this.connection = null;
  }

  // Asks for it with `body`, JSON, or with null goes on where `answer` is. Returns when it has
  // ended. However often a connection breaks: the server computes it to its end, and stop() is the
  // way out.
  async run(body) {
    let tries = 0;
    while (this.answer.state === 'running') {
      const before = this.answer.events;
      try {
        const response = await this.connect(body);
        body = null;  // the server has it
        await this.follow(response);
        if (this.answer.state !== 'running') break;
        this.answer.trouble = 'The connection broke.';
      } catch (error) {
        if (this.answer.state !== 'running') break;
        if (error instanceof Refusal && !this.isWorthWaiting(error, body)) {
          this.fail(refusalAdvice(error, !body));
          break;
        }
        if (body && !(error instanceof Refusal) && !(await this.hasArrived())) {
          this.fail({
            message: 'The server cannot be reached.',
            action: 'again',
            advice: 'See that it runs and that this machine can reach it.'
          });
          break;
        }
        this.answer.trouble = error instanceof Refusal ? error.message : 'The connection broke.';
      }
      body = null;
      this.answer.attached = true;
      if (this.answer.events > before) tries = 0;
      const pause = retryPauses[Math.min(tries++, retryPauses.length - 1)];
      this.answer.trouble += ` Trying again in ${pause} s.`;
      this.changed();
      await this.sleep(pause);
    }
    this.changed();
  }

  stop() {
    if (this.answer.state !== 'running') return;
    this.end('stopped');
    // Also ends the stream where the server does not notice that we left.
    fetch(`/v1/requests/${this.answer.id}/cancel`, {
      method: 'POST',
      keepalive: true,
      headers: settings.headers()
    }).catch(() => {});
    this.connection?.abort();
    this.wake?.();
    this.changed();
  }

  // --- connections ---

  async connect(body) {
    this.connection = new AbortController();
    const {id, events} = this.answer,
               headers = {...settings.headers(), Accept: 'text/event-stream'};
    const response = body ?
        await fetch('/v1/chat/completions', {
          method: 'POST',
          signal: this.connection.signal,
          body,
          headers: {...headers, 'Content-Type': 'application/json', 'X-Request-Id': id}
        }) :
        await fetch(
            `/v1/requests/${id}?after=${events}`, {signal: this.connection.signal, headers});
    if (!response.ok) throw await Refusal.of(response);
    return response;
  }

  // Whether a request that broke off before there was a response is known to the server.
  async hasArrived() {
    try {
      const probe = new AbortController();
      const response = await fetch(
          `/v1/requests/${this.answer.id}`, {headers: settings.headers(), signal: probe.signal});
      probe.abort();
      return response.ok;
    } catch {
      return false;
    }
  }

  // A server that starts again, or is full for a moment, still has what we asked it for.
  isWorthWaiting(refusal, body) {
    return !body && [429, 502, 503, 504].includes(refusal.status);
  }

  async follow(response) {
    for await (const event of readEvents(response.body)) {
      if (this.answer.state !== 'running') return;
      delete this.answer.trouble;
      if (event.comment !== undefined)
        this.takeComment(event.comment);
      else if (event.data === '[DONE]')
        this.end('done');
      else
        this.takeEvent(event.data);
      this.changed();
    }
  }

  takeComment(text) {
    const prefill = /^prefill (\d+)\/(\d+)(?: eta (\d+)\s*s)?/.exec(text);
    if (prefill) {
      const [done, total, eta] = prefill.slice(1).map(Number);  // without an eta: NaN
      this.answer.progress = {done, total, eta};
    } else if (text === 'queued') {
      this.answer.progress = {queued: true};
    }
  }

  takeEvent(json) {
    const {answer} = this, event = JSON.parse(json);
    ++answer.events;
    if (event.error) {
      if (event.error.code === 'cancelled')
        this.end('stopped');
      else
        this.fail(refusalAdvice(new Refusal(0, event.error, null), true));
      return;
    }
    const choice = event.choices?.[0], delta = choice?.delta ?? {};
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (reasoning || delta.content || delta.tool_calls) answer.reading_ended ??= Date.now();
    if (reasoning) answer.reasoning += reasoning;
    if ((delta.content || delta.tool_calls) && answer.reasoning)
      answer.thinking_ended ??= Date.now();
    if (delta.content) answer.content += delta.content;
    for (const call of delta.tool_calls ?? []) this.takeCall(call);
    if (choice?.finish_reason) answer.finish = choice.finish_reason;
    if (event.usage) answer.usage = event.usage;
    // As text: a Number would round it.
    answer.seed ??= /"deltafin":\{[^}]*"seed":(\d+)/.exec(json)?.[1] ?? null;
  }

  // A call may come in pieces.
  takeCall({index, id, function: {name, arguments: text} = {}, error}) {
    const calls = (this.answer.calls ??= []);
    const call = (calls[index ?? calls.length] ??= {id: '', name: '', arguments: ''});
    call.id ||= id ?? '';
    call.name ||= name ?? '';
    call.arguments += text ?? '';
    if (error) call.error = error;
  }

  // --- ends ---

  end(state) {
    const {answer} = this;
    answer.state = state;
    answer.ended = Date.now();
    if (answer.reasoning) answer.thinking_ended ??= answer.ended;
    delete answer.progress;
    delete answer.trouble;
  }

  fail(error) {
    this.answer.error = error;
    this.end('failed');
  }

  sleep(seconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

// What a person can do about it. `begun`: the request had been accepted before.
function refusalAdvice(refusal, begun) {
  const {status, param} = refusal;
  // Its further lines are advice for those who write programs.
  const message = refusal.message.split('\n')[0];
  if (status === 401 || status === 403)
    return {message, advice: 'Enter the API key that the server was started with.', action: 'key'};
  if (status === 404 && begun)
    return {
      message: 'The server no longer has this answer.',
      action: 'again',
      advice: 'It was kept for a while and is gone. What had arrived is above.'
    };
  if (status === 429)
    return {
      message,
      action: 'again',
      advice: refusal.retryAfter ? `Wait ${durationText(refusal.retryAfter)}, then try again.` :
                                   'Wait until a request has ended, then try again.'
    };
  if (status === 503)
    return {message, advice: 'Wait until the server is ready, then try again.', action: 'again'};
  if (refusal.code === 'context_length_exceeded' && param !== 'max_tokens')
    return {message, advice: 'Shorten the message, or begin a new chat.', action: 'edit'};
  const inSettings =
      /^(temperature|top_p|max_tokens|max_completion_tokens|seed|reasoning_effort)/.exec(
          param ?? '');
  if (inSettings)
    return {
      message,
      advice: 'Change it in the settings, then try again.',
      action: 'settings',
      param: inSettings[1]
    };
  if (status === 400 || status === 413)
    return {message, advice: 'Change the message, then send it again.', action: 'edit'};
  return {message, advice: 'The server itself goes on: try again.', action: 'again'};
}
