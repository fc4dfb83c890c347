'use strict';
// Server-sent events out of the body of a response.

// Yields {data} for each event and {comment} for each line that begins with a colon, in order. Ends
// with the body; throws when the connection breaks.
async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += value;
      // A \r at the end may be half of a \r\n.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === '') {
          if (data.length) yield {data: data.join('\n')};
          data = [];
        } else if (line[0] === ':') {
          yield {comment: line.slice(1).trim()};
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// What the server refused, as an exception.
class Refusal extends Error {
  constructor(status, error, retryAfter) {
    super(error?.message || `The server answered with status ${status}.`);
    this.status = status;
    this.param = error?.param ?? null;
    this.code = error?.code ?? null;
    this.retryAfter = retryAfter;
  }
  static async of(response) {
    let error = null;
    try {
      error = (await response.json()).error;
    } catch {
      // No JSON: something between us and the server answered.
    }
    return new Refusal(response.status, error, Number(response.headers.get('Retry-After')) || null);
  }
}
