'use strict';
// Numbers and times as people read them, in the manner of the command line: three digits, decimal
// units.

function significant(value) {
  const digits = value < 2 || (value >= 10 && value < 20) ? 4 : 3;
  const before = value < 10 ? 1 : value < 100 ? 2 : 3;
  return value.toFixed(Math.max(0, digits - before));
}

// [number, unit]
function bytesParts(bytes) {
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  if (bytes < 999.5) return [String(Math.round(bytes)), 'bytes'];
  let unit = -1;
  do {
    bytes /= 1000;
    ++unit;
  } while (bytes >= 999.5 && unit + 1 < units.length);
  return [significant(bytes), units[unit]];
}
const bytesText = (bytes) => bytesParts(bytes).join('\u00a0');

const wholeText = (number) => number.toLocaleString('en-US', {maximumFractionDigits: 0});
const rateText = (rate) =>
    (rate >= 100    ? wholeText(rate) :
         rate >= 10 ? rate.toFixed(1) :
                      rate.toFixed(2));
const percentText = (part) =>
    `${(100 * part).toFixed(part >= 0.0005 && part < 0.0995 ? 1 : 0)}\u00a0%`;
const countText = (count, noun) => `${wholeText(count)} ${noun}${count === 1 ? '' : 's'}`;

function durationText(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  if (whole < 86400)
    return `${Math.floor(whole / 3600)} h ${
        String(Math.floor(whole / 60) % 60).padStart(2, '0')} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor(whole / 3600) % 24} h`;
}

// Of a clock that runs: "0:42", "1:02:03".
function clockText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60);
  const tail = String(whole % 60).padStart(2, '0');
  return hours ? `${hours}:${String(minutes % 60).padStart(2, '0')}:${tail}` : `${minutes}:${tail}`;
}

const find = (id) => document.getElementById(id);

// An element with attributes and children; text stays text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true)
      made.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Only what changed is written: an assignment alone would lay the page out again and end a
// selection.
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
