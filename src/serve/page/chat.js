'use strict';
// The chat: what is shown of the conversation, and what is done with it.

// --- one turn ---

class TurnView {
  // `act` is called with the name of an action and the turn.
  constructor(turn, act) {
    this.turn = turn;
    this.question = element('div', {class: 'question'}, turn.user);
    this.thought = element('div', {class: 'thought', tabindex: -1});
    this.thoughtTitle = element('span');
    this.reasoning = element(
        'details', {class: 'reasoning', hidden: true}, element('summary', {}, this.thoughtTitle),
        this.thought);
    // Once it was opened or closed by hand, it stays so.
    this.reasoning.firstChild.addEventListener('click', () => (this.touched = true));
    this.progressText = element('span');
    this.progressClock = element('span');
    this.progressBar = element('i');
    this.progress = element(
        'div', {class: 'progress', hidden: true},
        element('p', {}, this.progressText, this.progressClock),
        element('div', {class: 'bar'}, this.progressBar));
    this.content = element('div', {class: 'content'});
    this.calls = element('div', {class: 'calls', hidden: true});
    this.trouble = element('p', {class: 'trouble', hidden: true});
    this.error = element('div', {class: 'error', role: 'alert', hidden: true});
    this.meta = element('div', {class: 'meta'});
    this.answer = element(
        'article', {class: 'answer', 'aria-label': 'Answer'}, this.progress, this.reasoning,
        this.content, this.calls, this.trouble, this.error, this.meta);
    this.root = element('div', {class: 'turn'}, this.question, this.answer);
    this.act = act;
    this.update();
  }

  update() {
    const {answer} = this.turn, running = answer.state === 'running';
    this.root.dataset.state = answer.state;
    this.root.classList.toggle('void', isVoid(this.turn));
    // Read out when it is whole, not word by word.
    this.answer.setAttribute('aria-busy', String(running));
    this.showProgress(answer, running);
    this.showReasoning(answer, running);
    showMarkdown(this.content, answer.content);
    this.showCalls(answer.calls ?? []);
    this.trouble.hidden = !answer.trouble;
    setText(this.trouble, answer.trouble ?? '');
    if (!running && !this.ended) {
      this.ended = true;
      this.showEnd(answer);
    }
  }

  // Of the clock alone.
  tick() {
    const {answer} = this.turn;
    this.showProgress(answer, true);
    this.showReasoning(answer, true);
  }

  showProgress(answer, running) {
    const reading = running && !answer.reasoning && !answer.content && !answer.calls;
    this.progress.hidden = !reading;
    if (!reading) return;
    const {progress} = answer;
    let text = 'Waiting for the server';
    if (progress?.queued)
      text = 'Waiting in the queue';
    else if (progress)
      text = `Reading the prompt: ${wholeText(progress.done)} of ${
                 countText(progress.total, 'token')}` +
          (progress.eta ? `, about ${durationText(progress.eta)} more` : '');
    setText(this.progressText, text);
    setText(this.progressClock, clockText((Date.now() - answer.started) / 1000));
    const part = progress?.total ? progress.done / progress.total : 0;
    this.progressBar.parentElement.hidden = !progress?.total;
    this.progressBar.style.width = `${100 * part}%`;
  }

  showReasoning(answer, running) {
    this.reasoning.hidden = !answer.reasoning;
    if (!answer.reasoning) return;
    const thinking = running && !answer.content && !answer.calls;
    const seconds = ((thinking ? Date.now() : answer.thinking_ended ?? Date.now()) -
                     (answer.reading_ended ?? answer.started)) /
        1000;
    setText(
        this.thoughtTitle,
        thinking ? `Thinking · ${clockText(seconds)}` :
            answer.attached || seconds < 0.05 ? 'Reasoning' :
                                                `Thought for ${durationText(seconds)}`);
    this.reasoning.classList.toggle('live', thinking);
    if (!this.touched) this.reasoning.open = thinking;
    const atEnd =
        this.thought.scrollHeight - this.thought.scrollTop - this.thought.clientHeight < 40;
    // More of the same text: appended, so that a selection stays.
    const node = this.thought.firstChild ?? this.thought.appendChild(document.createTextNode(''));
    if (answer.reasoning.startsWith(node.data))
      node.appendData(answer.reasoning.slice(node.data.length));
    else
      node.data = answer.reasoning;
    if (thinking && atEnd) this.thought.scrollTop = this.thought.scrollHeight;
  }

  showCalls(calls) {
    const text = JSON.stringify(calls);
    if (text === this.shownCalls) return;
    this.shownCalls = text;
    this.calls.hidden = !calls.length;
    this.calls.replaceChildren(...calls.map(
        (call) => element(
            'figure', {class: 'code call'},
            element('figcaption', {}, element('span', {}, 'Calls ', element('b', {}, call.name))),
            element(
                'pre', {tabindex: 0, 'aria-label': `Arguments of ${call.name}`},
                element('code', {}, argumentsText(call.arguments))),
            call.error ? element('p', {}, `These are no arguments: ${call.error}`) : '')));
  }

  showEnd(answer) {
    const facts = answerFacts(answer);
    if (answer.state === 'stopped') facts.unshift('Stopped');
    if (answer.finish === 'length') facts.unshift('Cut off at max tokens');
    if (answer.calls) facts.unshift('This page has no tools: nothing was called');
    if (answer.state === 'done' && !answer.content && !answer.calls)
      facts.unshift(answer.reasoning ? 'Ended before an answer began' : 'An empty answer');
    this.meta.replaceChildren(element('span', {}, facts.join(' · ')));
    if (answer.content) this.meta.append(copyButton(() => answer.content));
    const {error} = answer;
    this.error.hidden = !error;
    if (error) {
      const names = {
        again: 'Try again',
        edit: 'Edit message',
        key: 'Enter API key',
        settings: 'Open settings'
      };
      const buttons =
          [error.action, error.action !== 'again' && 'again'].filter(Boolean).map((action) => {
            const button = element('button', {type: 'button'}, names[action]);
            button.addEventListener('click', () => this.act(action, this.turn));
            return button;
          });
      this.error.replaceChildren(
          element('p', {}, element('strong', {}, sentence(error.message)), ` ${error.advice}`),
          ...buttons);
    }
  }
}

// JSON with a line for each member. As it is where it is none, or where a Number would round it.
function argumentsText(json) {
  try {
    return /\d{16}/.test(json) ? json : JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

// A message of the server begins as it may: with a word, or with the name of a file or field.
const sentence = (text) =>
    text.replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase()).replace(/[.!?]?$/, '.');

// What the end of an answer tells, in words.
function answerFacts(answer) {
  const {usage} = answer, facts = [];
  if (!usage) return facts;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  facts.push(`${countText(usage.prompt_tokens, 'prompt token')}${
      cached ? `, ${wholeText(cached)} known` : ''}`);
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  facts.push(`${wholeText(usage.completion_tokens)} generated${
      reasoning ? `, ${wholeText(reasoning)} of them reasoning` : ''}`);
  if (!answer.attached && answer.reading_ended) {
    facts.push(`first after ${durationText((answer.reading_ended - answer.started) / 1000)}`);
    const seconds = (answer.ended - answer.reading_ended) / 1000;
    if (usage.completion_tokens > 1 && seconds > 0.05)
      facts.push(`${rateText((usage.completion_tokens - 1) / seconds)} tokens/s`);
  }
  if (answer.seed) facts.push(`seed ${answer.seed}`);
  return facts;
}

// --- all of them ---

const chat = {
  views: new Map(),
  generation: null,
  modelId: null,

  start() {
    this.scroll = find('scroll');
    this.log = find('log');
    this.message = find('message');
    this.send = find('send');

    find('composer').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.generation)
        this.stop();
      else
        this.sendMessage();
    });
    this.message.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.generation) this.sendMessage();
    });
    this.message.addEventListener('input', () => this.fitMessage());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.generation && !find('settings').open) this.stop();
    });
    find('new-chat').addEventListener('click', () => this.clear());
    find('latest').addEventListener('click', () => this.toEnd());
    this.scroll.addEventListener('scroll', () => this.noteScroll());
    addEventListener('pagehide', () => this.generation && conversation.save());
    addEventListener('storage', (event) => {
      if (event.key === 'deltafin.conversation') this.mirror();
    });
    document.addEventListener('visibilitychange', () => this.showRunning());
    setInterval(() => this.tick(), 1000);

    this.restore();
    const last = conversation.turns.at(-1);
    if (last?.answer.state === 'running') {
      last.answer.attached = true;
      this.follow(last, async () => null);
    }
  },

  restore() {
    conversation.load();
    this.showAll();
    this.toEnd();
  },
  // Another page of this server wrote the conversation. Unless it began a new one, the page in
  // which an answer runs knows best.
  mirror() {
    if (!this.generation)
      this.restore();
    else if (storage.read('conversation')?.id !== conversation.id)
      location.reload();
  },

  // --- what the user does ---

  sendMessage() {
    const text = this.message.value.trim();
    if (!text) return;
    this.message.value = '';
    this.fitMessage();
    this.ask(text);
  },

  ask(text) {
    const turn = {user: text, answer: newAnswer()};
    conversation.turns.push(turn);
    conversation.save();
    this.showAll();
    this.toEnd();
    const fields = {
      messages: conversation.messages(),
      stream: true,
      stream_options: {include_usage: true}
    };
    this.follow(
        turn, async () => settings.request({model: (await this.model()) ?? undefined, ...fields}));
  },

  stop() {
    this.generation?.stop();
  },

  clear() {
    this.stop();
    conversation.clear();
    this.showAll();
    this.message.focus();
  },

  act(action, turn) {
    if (action === 'settings') return settings.open(turn.answer.error.param);
    if (action === 'key') return settings.open('key');
    if (this.generation) return;
    conversation.turns.splice(conversation.turns.indexOf(turn), 1);
    if (action === 'again') return this.ask(turn.user);
    conversation.save();
    this.showAll();
    this.message.value = turn.user;
    this.fitMessage();
    this.message.focus();
  },

  // --- a running answer ---

  async model() {
    if (this.modelId) return this.modelId;
    try {
      const response = await fetch('/v1/models', {headers: settings.headers()});
      this.modelId = (await response.json()).data[0].id;
    } catch {
      // The request itself will say what is wrong.
    }
    return this.modelId;
  },

  // `makeBody` gives what to ask for, or null for an answer that was asked for already.
  async follow(turn, makeBody) {
    const {answer} = turn, view = this.views.get(turn);
    let frame = 0, saved = 0, stage = '';
    const changed = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        this.keepingEnd(() => view.update());
      });
      if (Date.now() - saved > 1000) {
        saved = Date.now();
        conversation.save();
      }
      const now = answer.calls ? 'Calling a tool' :
          answer.content       ? 'Answering' :
          answer.reasoning     ? 'Thinking' :
          answer.progress      ? 'Reading the prompt' :
                                 '';
      if (now !== stage) this.announce((stage = now));
    };
    const generation = (this.generation = new Generation(answer, changed));
    this.showRunning();
    await generation.run(await makeBody());
    cancelAnimationFrame(frame);
    this.keepingEnd(() => view.update());
    // After "New chat" this turn is no part of the conversation any more.
    if (this.generation === generation) this.generation = null;
    conversation.save();
    this.showRunning();
    this.announce({done: 'The answer is complete', stopped: 'Stopped', failed: ''}[answer.state]);
  },

  tick() {
    const turn = conversation.turns.at(-1);
    if (this.generation && turn?.answer.state === 'running') this.views.get(turn).tick();
  },

  // --- what is shown ---

  showAll() {
    const {turns} = conversation;
    for (const [turn, view] of this.views) {
      if (turns.includes(turn)) continue;
      view.root.remove();
      this.views.delete(turn);
    }
    for (const turn of turns) {
      if (this.views.has(turn)) continue;
      const view = new TurnView(turn, (action, of) => this.act(action, of));
      this.views.set(turn, view);
      this.log.append(view.root);
    }
    find('welcome').hidden = turns.length > 0;
    find('dropped').hidden = !conversation.dropped;
  },

  showRunning() {
    const running = Boolean(this.generation);
    setText(this.send, running ? 'Stop' : 'Send');
    this.send.classList.toggle('stop', running);
    // A tab behind others tells when it is worth looking.
    const answered = document.hidden && (this.answeredUnseen ||= this.wasRunning && !running);
    this.answeredUnseen &&= document.hidden;
    this.wasRunning = running;
    document.title = running ? '… deltafin' : answered ? '✓ deltafin' : 'deltafin';
  },

  announce(text) {
    if (text) setText(find('announce'), text);
  },

  fitMessage() {
    this.message.style.height = 'auto';
    this.message.style.height = `${this.message.scrollHeight}px`;
  },

  // --- the end of the conversation stays in view while the user is there ---

  isAtEnd() {
    return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < 60;
  },
  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.noteScroll();
  },
  keepingEnd(change) {
    const wasAtEnd = this.isAtEnd();
    change();
    if (wasAtEnd)
      this.toEnd();
    else
      this.noteScroll();
  },
  noteScroll() {
    find('latest').hidden = this.isAtEnd();
  },
};
