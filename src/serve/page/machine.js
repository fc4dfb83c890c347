'use strict';
// The machine at work: what GET /status says (docs/status.md), once a second while somebody looks.

const pollSeconds = 1, pollPatienceSeconds = 8, tracedSeconds = 120;

const stateNames = {
  loading: 'Loading',
  ready: 'Ready',
  draining: 'Draining',
  degraded: 'Degraded',
  unreachable: 'Unreachable',
  locked: 'Key needed',
  unknown: 'Connecting'
};
const partNames = [
  ['trunk', 'Trunk'], ['experts', 'Experts'], ['state', 'State'], ['activations', 'Activations']
];
const doingNames = {
  idle: 'Idle',
  prefill: 'Reading',
  decode: 'Generating'
};

// --- what was seen, and rates out of it ---

const seen = {
  samples: [],  // oldest first, of tracedSeconds

  add(status) {
    const sample = {
      at: status.uptime_seconds,
      read: status.disk.bytes_read,
      generated: status.tokens.generated,
      layers: status.layers,
      idle: status.activity.kind === 'idle'
    };
    const last = this.samples.at(-1);
    if (last && sample.at === last.at) return;
    if (last && sample.at < last.at) this.samples = [];  // another process
    this.samples.push(sample);
    while (sample.at - this.samples[0].at > tracedSeconds) this.samples.shift();
    sample.readRate = this.readRate();
    sample.tokenRate = this.tokenRate();
  },
  // The newest sample that is at least so old, or the oldest.
  before(seconds) {
    const {at} = this.samples.at(-1);
    return this.samples.findLast((sample) => at - sample.at >= seconds) ?? this.samples[0];
  },
  rate(from, field) {
    const now = this.samples.at(-1);
    return now.at > from.at ? Math.max(0, now[field] - from[field]) / (now.at - from.at) : 0;
  },
  readRate() {
    return this.rate(this.before(2.5), 'read');
  },
  // Tokens may come seconds apart: over as long as it takes for eight of them.
  tokenRate() {
    const now = this.samples.at(-1), recent = this.before(4);
    if (now.generated === recent.generated && now.idle) return 0;
    for (const seconds of [4, 8, 15, 30]) {
      const from = this.before(seconds);
      if (now.generated - from.generated >= 8) return this.rate(from, 'generated');
    }
    // From the last moment without any: time before the first token says nothing of a rate.
    const {generated} = this.before(60);
    return this.rate(
        this.samples.findLast((sample) => sample.generated === generated), 'generated');
  },
  // Of each layer over the last minute.
  recentLayers() {
    const now = this.samples.at(-1).layers, from = this.before(60).layers;
    return now.map((layer, i) => ({
                     hits: layer.hits - (from[i]?.hits ?? 0),
                     misses: layer.misses - (from[i]?.misses ?? 0),
                     bytes_read: layer.bytes_read - (from[i]?.bytes_read ?? 0)
                   }));
  },
};

// --- the strip of layers ---

const strip = {
  span: 'minute',
  columns: [],
  layers: [],
  pointed: null,  // the layer that the reader asks about

  start() {
    this.root = find('strip');
    for (const button of document.querySelectorAll('[data-span]'))
      button.addEventListener('click', () => {
        this.span = button.dataset.span;
        for (const other of document.querySelectorAll('[data-span]'))
          other.setAttribute('aria-pressed', String(other === button));
        this.draw();
      });
    this.root.addEventListener('pointermove', (event) => {
      const {left, width} = this.root.getBoundingClientRect();
      this.point(Math.floor(((event.clientX - left) / width) * this.columns.length));
    });
    this.root.addEventListener('pointerleave', () => this.point(null));
    this.root.addEventListener('blur', () => this.point(null));
    this.root.addEventListener('keydown', (event) => {
      const last = this.columns.length - 1, at = this.pointed ?? this.current ?? 0;
      const to = {
        ArrowLeft: at - 1,
        ArrowDown: at - 1,
        ArrowRight: at + 1,
        ArrowUp: at + 1,
        Home: 0,
        End: last
      }[event.key];
      if (to === undefined || last < 0) return;
      event.preventDefault();
      this.point(to);
    });
  },
  point(layer) {
    this.pointed = layer === null || !this.columns.length ?
        null :
        Math.max(0, Math.min(this.columns.length - 1, layer));
    this.drawReadout();
  },

  show(status) {
    this.total = status.layers;
    this.current = status.activity.kind === 'idle' ? null : status.activity.layer;
    const count = status.layers.length || status.model?.layers || 0;
    if (count !== this.columns.length) this.build(count);
    this.columns.forEach((column, i) => column.classList.toggle('lit', i === this.current));
    this.draw();
  },
  build(count) {
    this.columns = Array.from({length: count}, () => element('i'));
    this.root.replaceChildren(...this.columns);
    this.root.classList.toggle('dense', count > 48);
    this.root.setAttribute('aria-valuemax', String(Math.max(0, count - 1)));
    const step = count > 60 ? 20 : count > 24 ? 10 : count > 10 ? 5 : 1;
    find('axis').replaceChildren(...Array.from({length: Math.ceil(count / step)}, (_, i) => {
      const mark = element('span', {}, String(i * step));
      mark.style.left = `${(100 * (i * step + 0.5)) / count}%`;
      return mark;
    }));
    this.pointed = null;
  },
  draw() {
    if (!this.total || !seen.samples.length) return;
    this.layers = this.span === 'minute' ? seen.recentLayers() : this.total;
    const most = Math.max(1, ...this.layers.map((layer) => layer.hits + layer.misses));
    this.layers.forEach((layer, i) => {
      const {style} = this.columns[i];
      style.setProperty('--hits', `${(100 * layer.hits) / most}%`);
      style.setProperty('--used', `${(100 * (layer.hits + layer.misses)) / most}%`);
    });
    this.drawReadout();
  },
  drawReadout() {
    const line = find('readout'), layer = this.layers[this.pointed];
    this.columns.forEach((column, i) => column.classList.toggle('pointed', i === this.pointed));
    if (layer) {
      const text = layer.hits + layer.misses === 0 ?
          `Layer ${this.pointed}: no experts used` :
          `Layer ${this.pointed}: ${wholeText(layer.hits)} from memory, ${
              wholeText(layer.misses)} read, ${bytesText(layer.bytes_read)}`;
      setText(line, text);
      this.root.setAttribute('aria-valuenow', String(this.pointed));
      this.root.setAttribute('aria-valuetext', text);
      return;
    }
    const hits = this.layers.reduce((sum, one) => sum + one.hits, 0),
          misses = this.layers.reduce((sum, one) => sum + one.misses, 0);
    const when = this.span === 'minute' ? 'in the last minute' : 'since the start';
    if (hits + misses === 0) {
      setText(line, this.layers.length ? `No expert was used ${when}` : '');
    } else {
      const key = (kind, count, text) => element(
          'span', {class: `key-${kind}`}, `${percentText(count / (hits + misses))} ${text}`);
      line.replaceChildren(
          key('memory', hits, 'from memory'), ' ', key('disk', misses, 'read from disk'));
    }
    this.root.setAttribute('aria-valuetext', line.textContent);
  },
};

// --- everything else ---

// Draws the values of `field` over the last two minutes; `full` is the height of the whole.
function drawTrace(svg, field, full) {
  const now = seen.samples.at(-1).at;
  const samples =
      seen.samples.length > 1 ? seen.samples.slice(1) : seen.samples;  // the first has no rate
  const point = (sample) => `${(tracedSeconds - (now - sample.at)).toFixed(1)} ${
      (31 - 30 * Math.min(1, sample[field] / full)).toFixed(1)}`;
  const line = samples.map(point).join('L');
  const [area, path] = svg.children;
  path.setAttribute('d', `M${line}`);
  area.setAttribute(
      'd', `M${tracedSeconds - (now - samples[0].at)} 32L${line}L${tracedSeconds} 32Z`);
}

const machine = {
  status: null,
  listeners: [],  // called with each status

  start() {
    strip.start();
    find('key-form').addEventListener('submit', (event) => {
      event.preventDefault();
      settings.save({...settings.values, key: find('key-here').value.trim()});
    });
    settings.listeners.push(() => this.wake?.());
    document.addEventListener('visibilitychange', () => this.wake?.());
    this.poll();
  },

  async poll() {
    for (;;) {
      // Whatever a server says, the next answer may be better.
      if (!document.hidden) await this.look().catch((error) => console.error(error));
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, document.hidden ? 3600000 : pollSeconds * 1000);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  },

  async look() {
    let state = 'unreachable';
    try {
      const response = await fetch(
          '/status',
          {headers: settings.headers(), signal: AbortSignal.timeout(pollPatienceSeconds * 1000)});
      if (response.status === 401 || response.status === 403)
        state = 'locked';
      else if (response.ok) {
        this.status = await response.json();
        state = this.status.state;
      }
    } catch {
      // Said by the lamp.
    }
    const live = state in stateNames && !['unreachable', 'locked'].includes(state);
    this.showState(state, live);
    if (!live) return;
    seen.add(this.status);
    this.show(this.status);
    for (const listener of this.listeners) listener(this.status);
  },

  showState(state, live) {
    const lamp = find('lamp'),
          loading = live && state === 'loading' ? this.status.loading?.fraction ?? 0 : null;
    lamp.dataset.state = find('machine').dataset.state = state;
    const name = loading === null ? stateNames[state] ?? state :
                                    `Loading ${percentText(Math.floor(100 * loading) / 100)}`;
    setText(find('lamp-text'), name);
    find('machine').classList.toggle('stale', !live);
    const bar = find('loading');
    bar.hidden = loading === null;
    if (loading !== null) {
      bar.firstElementChild.style.width = `${100 * loading}%`;
      bar.setAttribute('aria-valuenow', String(Math.round(100 * loading)));
    }
    find('key-form').hidden = state !== 'locked';
    const reason = state === 'unreachable' ?
        'No answer from the server. Asking again every second.' :
        live ? this.status.reason :
               null;
    find('reason').hidden = !reason;
    setText(find('reason'), reason ?? '');
    if (!live) {
      setText(find('glance-text'), name);
      setText(find('glance-rate'), '');
    }
  },

  show(status) {
    this.showModel(status.model);
    this.showDoing(status);
    strip.show(status);
    this.showTokens(status);
    this.showDisk(status);
    this.showMemory(status.memory);
    this.showRequests(status.requests);
    this.showPrefix(status);
    setText(
        find('machine-foot'),
        `${wholeText(status.passes)} ${status.passes === 1 ? 'pass' : 'passes'} · up ${
            durationText(status.uptime_seconds)} · deltafin ${status.version}`);
  },

  showModel(model) {
    if (!model) return;
    setText(find('model-id'), model.id);
    setText(find('welcome-model'), model.id);
    setText(
        find('model-facts'),
        `${model.architecture} · ${countText(model.layers, 'layer')} · ` +
            `${bytesText(model.parameters_bytes)} of weights, ${
                bytesText(model.trunk_bytes)} of them trunk`);
  },

  showDoing({activity, state}) {
    const {kind, layer, layers, rows} = activity;
    const idle = kind === 'idle', name = state === 'loading' ? 'Loading' : doingNames[kind] ?? kind;
    setText(
        find('doing'),
        idle ? name : `${name} ${countText(rows, kind === 'decode' ? 'answer' : 'prompt token')}`);
    setText(find('glance-text'), idle ? name : `${name} · layer ${layer}`);
    find('glance-place').style.width = idle ? '0' : `${(100 * (layer + 1)) / layers}%`;
    find('now-title').dataset.layer = idle ? '' : `layer ${layer}`;
  },

  showTokens(status) {
    const {tokenRate} = seen.samples.at(-1),
          peak = Math.max(...seen.samples.map((sample) => sample.tokenRate));
    setText(find('tokens-now'), tokenRate ? rateText(tokenRate) : '0');
    drawTrace(find('tokens-trace'), 'tokenRate', Math.max(peak * 1.1, 0.1));
    setText(find('tokens-foot'), `${wholeText(status.tokens.generated)} generated`);
  },

  showDisk({disk}) {
    const {readRate} = seen.samples.at(-1),
          peak = Math.max(...seen.samples.map((sample) => sample.readRate));
    const probe = disk.probe_bytes_per_second, [number, unit] = bytesParts(readRate);
    setText(find('disk-now'), number);
    setText(find('disk-unit'), `${unit}/s`);
    setText(find('glance-rate'), readRate ? `${number}\u00a0${unit}/s` : '');
    find('disk-trace').classList.toggle('probed', Boolean(probe));
    drawTrace(find('disk-trace'), 'readRate', Math.max(probe ?? peak * 1.1, peak, 1));
    setText(
        find('disk-foot'),
        probe ? `${percentText(readRate / probe)} of ${bytesText(probe)}/s probed` :
                `${bytesText(disk.bytes_read)} read`);
    find('disk-foot').title = `${bytesText(disk.bytes_read)} read since the start`;
  },

  showMemory({budget_bytes: budget, resident_bytes: resident, parts}) {
    setText(find('memory-sum'), `${bytesText(resident)} in use of ${bytesText(budget)}`);
    const rows = partNames.map(([key, name]) => [key, name, parts[key] ?? 0]);
    const planned = rows.reduce((sum, row) => sum + row[2], 0),
          whole = Math.max(budget, planned, resident, 1);
    if (planned < budget) rows.push(['free', 'Unplanned', budget - planned]);
    const stack = find('stack'), legend = find('legend');
    const key = JSON.stringify([rows, resident, whole]);
    if (this.memoryShown === key) return;
    this.memoryShown = key;
    const used = element('b', {title: `${bytesText(resident)} in use`});
    used.style.left = `${(100 * resident) / whole}%`;
    stack.replaceChildren(
        ...rows.filter(([, , bytes]) => bytes).map(([part, name, bytes]) => {
          const piece = element('i', {'data-part': part, title: `${name}: ${bytesText(bytes)}`});
          piece.style.width = `${(100 * bytes) / whole}%`;
          return piece;
        }),
        used);
    stack.setAttribute(
        'aria-label', rows.map(([, name, bytes]) => `${name} ${bytesText(bytes)}`).join(', '));
    legend.replaceChildren(...rows.map(
        ([part, name, bytes]) => element(
            'div', {'data-part': part}, element('dt', {}, name),
            element('dd', {}, bytesText(bytes)))));
  },

  showRequests({running, queued, limit}) {
    setText(
        find('requests-sum'),
        `${wholeText(running)} of ${wholeText(limit)} running${
            queued ? `, ${wholeText(queued)} waiting` : ''}`);
    const shown =
        [...Array(Math.min(limit, 24)).keys()].map((i) => (i < running ? 'running' : 'open'));
    shown.push(...Array(Math.min(queued, 40)).fill('queued'));
    if (this.slotsShown === String(shown)) return;
    this.slotsShown = String(shown);
    find('slots').replaceChildren(...shown.map((kind) => element('i', {'data-kind': kind})));
  },

  showPrefix({tokens, prefix_cache: kept}) {
    const part = tokens.prompt ? tokens.cached / tokens.prompt : 0;
    setText(find('prefix-sum'), tokens.prompt ? percentText(part) : 'none yet');
    find('prefix').firstElementChild.style.width = `${100 * part}%`;
    const states =
        kept ? `; ${countText(kept.states, 'state')} kept, ${bytesText(kept.bytes)}` : '';
    setText(
        find('prefix-foot'),
        `${wholeText(tokens.cached)} of ${wholeText(tokens.prompt)} not read again${states}`);
  },
};
