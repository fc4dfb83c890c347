'use strict';
// The conversation as data: turns of a user's text and an answer, kept in this browser.

// Browsers give an origin about five million characters.
const keptCharactersMax = 1500000;

const conversation = {
  id: '',
  turns: [],
  dropped: false,

  load() {
    const kept = storage.read('conversation');
    this.id = kept?.id ?? newRequestId();
    this.turns = kept?.turns ?? [];
    this.dropped = kept?.dropped ?? false;
  },

  // Drops the oldest turns until the rest has room.
  save() {
    const cost = (turn) => turn.user.length + turn.answer.content.length +
        turn.answer.reasoning.length + JSON.stringify(turn.answer.calls ?? '').length + 500;
    let from = this.turns.length, sum = 0;
    while (from > 0 &&
           (from === this.turns.length || sum + cost(this.turns[from - 1]) <= keptCharactersMax))
      sum += cost(this.turns[--from]);
    let kept = this.turns.slice(from).map(({user, answer}) => {
      const {progress, trouble, ...rest} = answer;
      return {user, answer: rest};
    });
    const write = () => storage.write(
        'conversation',
        {id: this.id, turns: kept, dropped: this.dropped || kept.length < this.turns.length});
    while (!write() && kept.length) kept = kept.slice(1);
  },

  clear() {
    this.id = newRequestId();
    this.turns = [];
    this.dropped = false;
    this.save();
  },

  // What the model gets for the last turn. An answer that failed without a word is no part of it,
  // nor is its question: it may be what was wrong.
  messages() {
    const messages =
        settings.values.system ? [{role: 'system', content: settings.values.system}] : [];
    this.turns.forEach((turn, i) => {
      const isLast = i + 1 === this.turns.length;
      if (!isLast && isVoid(turn)) return;
      messages.push({role: 'user', content: turn.user});
      if (isLast) return;
      const {content, reasoning, calls} = turn.answer;
      messages.push({
        role: 'assistant',
        content,
        ...(reasoning && {reasoning_content: reasoning}),
        ...(calls && {
          tool_calls: calls.map(
              ({id, name, arguments: text}) =>
                  ({id, type: 'function', function: {name, arguments: text}}))
        })
      });
    });
    return messages;
  },
};

const isVoid = ({answer}) =>
    answer.state === 'failed' && !answer.content && !answer.reasoning && !answer.calls;
