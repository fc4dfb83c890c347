'use strict';
// What the user chose, kept in this browser.

// localStorage may be forbidden or full; the page then works until it is closed.
const storage = {
  read(key) {
    try {
      return JSON.parse(localStorage.getItem(`deltafin.${key}`));
    } catch {
      return null;
    }
  },
  // False: there was no room.
  write(key, value) {
    try {
      localStorage.setItem(`deltafin.${key}`, JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  },
};

const settings = {
  values: storage.read('settings') ?? {},
  listeners: [],

  save(values) {
    this.values = values;
    storage.write('settings', values);
    for (const listener of this.listeners) listener();
  },
  // What a request has to say, but the seed.
  fields() {
    const fields = {};
    for (const name of ['temperature', 'top_p', 'max_tokens'])
      if (this.values[name]) fields[name] = Number(this.values[name]);
    if (this.values.reasoning_effort) fields.reasoning_effort = this.values.reasoning_effort;
    return fields;
  },
  // The JSON of a request. A seed goes up to 2^64, which a Number would round.
  request(fields) {
    const json = JSON.stringify({...fields, ...this.fields()}), {seed} = this.values;
    return seed ? `${json.slice(0, -1)},"seed":${BigInt(seed)}}` : json;
  },
  headers() {
    return this.values.key ? {Authorization: `Bearer ${this.values.key}`} : {};
  },
  // What differs from the model's own, in a line.
  inEffect() {
    const names = {
      temperature: 'temperature',
      top_p: 'top p',
      max_tokens: 'max tokens',
      seed: 'seed',
      reasoning_effort: 'effort'
    };
    const {seed} = this.values, fields = {...this.fields(), ...(seed && {seed})};
    const parts = Object.entries(fields).map(([name, value]) => `${names[name]} ${value}`);
    if (this.values.system) parts.unshift('system prompt');
    return parts.length ? parts.join(', ') : 'Model defaults';
  },
};

// What is wrong with a field, or "".
function fieldProblem(input) {
  const text = input.value.trim();
  if (!text || input.dataset.max === undefined) return '';
  const {min, max} = input.dataset, value = Number(text);
  if (!Number.isFinite(value)) return 'This is no number';
  if (input.dataset.whole !== undefined && !/^\d+$/.test(text)) return 'A whole number is needed';
  // Seeds have more digits than a Number.
  const isAbove =
      input.dataset.whole !== undefined ? BigInt(text) > BigInt(max) : value > Number(max);
  if (value < Number(min) || isAbove) return `From ${min} to ${max}`;
  return '';
}

function startSettings() {
  const dialog = find('settings'), form = find('settings-form');
  const inputs = [...form.querySelectorAll('[name]')];

  const check = (input) => {
    const problem = fieldProblem(input), small = input.parentElement.querySelector('small');
    if (!small) return true;
    small.dataset.hint ??= small.textContent;
    setText(small, problem || small.dataset.hint);
    input.toggleAttribute('data-wrong', Boolean(problem));
    input.setAttribute('aria-invalid', String(Boolean(problem)));
    return !problem;
  };
  const open = (name) => {
    for (const input of inputs) {
      input.value = settings.values[input.name] ?? '';
      check(input);
    }
    dialog.showModal();
    if (typeof name === 'string') form.elements[name]?.focus();
  };

  form.addEventListener('input', (event) => check(event.target));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const wrong = inputs.filter((input) => !check(input));
    if (wrong.length) return wrong[0].focus();
    const values = {};
    for (const input of inputs)
      if (input.value.trim()) values[input.name] = input.value.trim();
    settings.save(values);
    dialog.close();
  });
  find('open-settings').addEventListener('click', open);
  find('in-effect').addEventListener('click', open);
  find('settings-cancel').addEventListener('click', () => dialog.close());
  find('settings-defaults').addEventListener('click', () => {
    for (const input of inputs) {
      if (input.name !== 'key') input.value = '';
      check(input);
    }
  });
  // Outside of it.
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });

  const show = () => setText(find('in-effect'), settings.inEffect());
  settings.listeners.push(show);
  settings.open = open;
  show();
}

function startTheme() {
  const names = {auto: 'as the system', light: 'light', dark: 'dark'}, order = Object.keys(names);
  const button = find('theme');
  let theme = storage.read('theme');
  const show = () => {
    if (!order.includes(theme)) theme = 'auto';
    document.documentElement.dataset.theme = theme;
    setText(button, theme[0].toUpperCase() + theme.slice(1));
    button.setAttribute('aria-label', `Colours: ${names[theme]}`);
  };
  button.addEventListener('click', () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    storage.write('theme', theme);
    show();
  });
  show();
}
