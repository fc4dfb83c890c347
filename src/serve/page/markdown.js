'use strict';
// Light Markdown as elements. Text of a model never becomes markup: everything goes through text
// nodes, and of links only http, https and mailto are.

// --- in a line ---

const inlineRules = [
  [
    /^(`+)([^`]|[^`][^]*?[^`])\1(?!`)/,
    (match) => element('code', {}, match[2].replace(/^ (.+) $/, '$1'))
  ],
  [/^\*\*(?=\S)([^]*?\S)\*\*/, (match) => element('strong', {}, ...inline(match[1]))],
  [/^__(?=\S)([^]*?\S)__(?!\w)/, (match) => element('strong', {}, ...inline(match[1])), true],
  [/^\*(?=[^\s*])([^*]*[^\s*])\*(?!\*)/, (match) => element('em', {}, ...inline(match[1]))],
  [/^_(?=[^\s_])([^_]*[^\s_])_(?!\w)/, (match) => element('em', {}, ...inline(match[1])), true],
  [/^~~(?=\S)([^]*?\S)~~/, (match) => element('s', {}, ...inline(match[1]))],
  [
    // Without a limit a row of brackets would be read as often as it has brackets.
    /^\[([^\]\n]{1,999})\]\(((?:https?:|mailto:)[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)/i,
    (match) => link(match[2], inline(match[1]))
  ],
  [/^https?:\/\/[^\s<>"'`)\]]*[^\s<>"'`)\].,;:!?*_]/i, (match) => link(match[0], [match[0]]), true],
  [/^\\([!-/:-@[-`{-~])/, (match) => match[1]],
];

const link = (target, children) =>
    element('a', {href: target, target: '_blank', rel: 'noopener noreferrer'}, ...children);

// The rules look far ahead at every mark; longer text than this is nothing that a person formatted.
const inlineMax = 20000;

function inline(text) {
  if (text.length > inlineMax) return [text];
  const out = [];
  let plain = '', at = 0;
  while (at < text.length) {
    const next = text.slice(at).search(/[`*_~[\\h]/);
    if (next < 0) break;
    plain += text.slice(at, at + next);
    at += next;
    const rest = text.slice(at);
    // snake_case is no emphasis.
    const inWord = /\w/.test(plain.slice(-1));
    let match = null, make = null;
    for (const [pattern, maker, startsWord] of inlineRules) {
      if (startsWord && inWord) continue;
      match = pattern.exec(rest);
      make = maker;
      if (match) break;
    }
    if (match) {
      if (plain) out.push(plain);
      plain = '';
      out.push(make(match));
      at += match[0].length;
    } else {
      const run = /^(?:`+|\*+|_+|.)/s.exec(rest)[0];
      plain += run;
      at += run.length;
    }
  }
  plain += text.slice(at);
  if (plain) out.push(plain);
  return out;
}

// --- blocks ---

const fenceStart = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const itemStart = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const rule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const tableRule = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const indentOf = (line) => /^\s*/.exec(line)[0].replace(/\t/g, '    ').length;

// The text cut into blocks, each the lines of one. A later piece of text can only change the last
// one, or come behind it: so what was shown stays.
function cutBlocks(text) {
  const lines = text.split('\n'), blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      ++at;
      continue;
    }
    const from = at, fence = fenceStart.exec(lines[at]);
    if (fence) {
      ++at;
      while (at < lines.length && !closesFence(lines[at], fence[1])) ++at;
      ++at;
    } else if (heading.test(lines[at]) || rule.test(lines[at])) {
      ++at;
    } else if (itemStart.test(lines[at])) {
      at = endOfList(lines, at);
    } else {
      const quoted = /^\s*>/.test(lines[at]);
      ++at;
      while (at < lines.length && lines[at].trim() && !fenceStart.test(lines[at]) &&
             !heading.test(lines[at]) && !rule.test(lines[at]) &&
             !/^\s{0,3}([-*+]|1[.)])\s+\S/.test(lines[at]) && (quoted || !/^\s*>/.test(lines[at])))
        ++at;
    }
    blocks.push(lines.slice(from, at).join('\n'));
  }
  return blocks;
}

const closesFence = (line, mark) => {
  const closing = line.trim();
  return closing.length >= mark.length && closing === mark[0].repeat(closing.length);
};

// Items, what is indented below them, and empty lines between them.
function endOfList(lines, at) {
  const indent = indentOf(lines[at]), ordered = /\d/.test(itemStart.exec(lines[at])[2]);
  let end = ++at, fence = null;
  for (; at < lines.length; ++at) {
    const line = lines[at];
    if (fence) {
      if (closesFence(line, fence)) fence = null;
    } else if (!line.trim()) {
      continue;
    } else {
      const item = itemStart.exec(line), deeper = indentOf(line) > indent;
      const sameKind = item && /\d/.test(item[2]) === ordered && !rule.test(line);
      const lazy = end === at && !item && !heading.test(line) && !/^\s*>/.test(line);
      if (!deeper && !sameKind && !lazy) break;
      if (!deeper && fenceStart.test(line)) break;
      fence =
          fenceStart.exec(line)?.[1] ?? fenceStart.exec(line.replace(itemStart, ''))?.[1] ?? null;
    }
    end = at + 1;
  }
  return end;
}

// Quotes and lists within each other: deeper than anybody writes, far from the end of the stack.
const depthMax = 12;

function makeBlock(source, depth) {
  const lines = source.split('\n'), first = lines[0];
  const fence = fenceStart.exec(first);
  if (fence) return codeBlock(fence, lines);
  const head = heading.exec(first);
  // The page has its own first two levels.
  if (head) return element(`h${Math.min(6, head[1].length + 2)}`, {}, ...inline(head[2]));
  if (rule.test(first)) return element('hr');
  if (depth < depthMax && itemStart.test(first)) return list(lines, depth + 1);
  if (depth < depthMax && /^\s*>/.test(first))
    return element(
        'blockquote', {},
        ...makeBlocks(lines.map((line) => line.replace(/^\s*> ?/, '')).join('\n'), depth + 1));
  if (lines.length > 1 && first.includes('|') && tableRule.test(lines[1]) && lines[1].includes('-'))
    return table(lines);
  return element('p', {}, ...lines.flatMap((line, i) => {
    const pieces = inline(line.trim());
    return i ? [element('br'), ...pieces] : pieces;
  }));
}

const makeBlocks = (text, depth) => cutBlocks(text).map((source) => makeBlock(source, depth));

function codeBlock(fence, lines) {
  const closed = lines.length > 1 && closesFence(lines[lines.length - 1], fence[1]);
  const indent = new RegExp(`^ {0,${indentOf(lines[0])}}`);
  const code =
      lines.slice(1, closed ? -1 : undefined).map((line) => line.replace(indent, '')).join('\n');
  const copy = copyButton(() => code);
  return element(
      'figure', {class: 'code'},
      element('figcaption', {}, element('span', {}, fence[2] || 'text'), copy),
      element('pre', {tabindex: 0, 'aria-label': 'Code'}, element('code', {}, code)));
}

function list(lines, depth) {
  const first = itemStart.exec(lines[0]), indent = indentOf(lines[0]),
        ordered = /\d/.test(first[2]);
  const items = [];
  for (const line of lines) {
    const item = itemStart.exec(line);
    if (item && indentOf(line) <= indent)
      items.push([line.replace(itemStart, '')]);
    else
      items[items.length - 1].push(line);
  }
  const start = ordered ? parseInt(first[2], 10) : 1;
  const loose = lines.some((line) => !line.trim());
  return element(
      ordered ? 'ol' : 'ul', {start: start === 1 ? null : start},
      ...items.map(([head, ...more]) => {
        const filled = more.filter((line) => line.trim());
        const inner = Math.min(...filled.map(indentOf), 12);
        const text =
            [head, ...more.map((line) => line.slice(Math.min(inner, indentOf(line))))].join('\n');
        const blocks = makeBlocks(text, depth);
        // A tight item is its text.
        return !loose && blocks[0]?.nodeName === 'P' ?
            element('li', {}, ...blocks[0].childNodes, ...blocks.slice(1)) :
            element('li', {}, ...blocks);
      }));
}

function table(lines) {
  const cells = (line) => line.trim()
                              .replace(/^\|/, '')
                              .replace(/\|$/, '')
                              .split(/(?<!\\)\|/)
                              .map((cell) => cell.trim().replace(/\\\|/g, '|'));
  const aligned = cells(lines[1]).map(
      (cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'end') : null));
  const row = (line, name) => element(
      'tr', {},
      ...cells(line).map((cell, i) => element(name, {'data-align': aligned[i]}, ...inline(cell))));
  return element(
      'div', {class: 'table', tabindex: 0, role: 'group', 'aria-label': 'Table'},
      element(
          'table', {}, element('thead', {}, row(lines[0], 'th')),
          element('tbody', {}, ...lines.slice(2).map((line) => row(line, 'td')))));
}

// Makes `container` show `text`; blocks that did not change stay the same elements.
function showMarkdown(container, text) {
  const sources = cutBlocks(text), shown = container.shownBlocks ?? [];
  let same = 0;
  while (same < sources.length && same < shown.length && sources[same] === shown[same]) ++same;
  while (container.childNodes.length > same) container.lastChild.remove();
  container.append(...sources.slice(same).map((source) => makeBlock(source, 0)));
  container.shownBlocks = sources;
}

// --- copying ---

function copyButton(textOf) {
  const button = element('button', {type: 'button', class: 'copy'}, 'Copy');
  button.addEventListener('click', async () => {
    const done = await copyText(textOf());
    button.textContent = done ? 'Copied' : 'Could not copy';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Plain http from another machine has no clipboard; the old way works there.
    const area = element('textarea', {class: 'hidden'});
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
