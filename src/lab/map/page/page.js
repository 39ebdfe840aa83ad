/* SPDX-License-Identifier: Apache-2.0
   The script that the pages share: maps (cli/draw/map_page.html) and films (film.html). */
const $ = id => document.getElementById(id);

/* The bytes of an element that the program wrote as base64; null if there is none. */
function bytesOf(id) {
  const element = $(id);
  if (!element) return null;
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  element.remove();
  return bytes;
}

const number = n => Number(n).toLocaleString('en-US');
/* For display: quoted if it is empty, contains white space or a quote, or begins with #. */
const quoted = word => word === '' || /[\s"]/.test(word) || word[0] === '#' ? '"' + word + '"' : word;
/* Shortened for a label, at a character boundary. */
const shortened = text => text.length <= 26 ? text : Array.from(text).slice(0, 24).join('') + '\u2026';

const dark = matchMedia('(prefers-color-scheme: dark)');
const still = matchMedia('(prefers-reduced-motion: reduce)');
/* the colours of map_community.c; the last is for rows without a community */
const tints = {
  light: '2f6fc4 d9682b 2f9152 b5406f 7a58c1 a38a12 1f94a3 c63f3f 6f8f25 9a52a8 8c6239 4f7f8f d0579b 3a57a8 5c9e6b b9772a 84487a 2a7d7a a65a5a 5f6fb8 a3a7b0',
  dark: '6ea8f7 f79a63 6bcf8e f07fae b39cf5 dcc557 5fd0de f58080 a9cf5c d592e0 cfa074 93bfcd f79fd0 8ea4ee 9bdcaa f2bd75 c58bbd 6fc4c0 e09c9c a8b4f0 5b616d'
};
for (const name of ['light', 'dark']) tints[name] = tints[name].split(' ').map(t => [0, 2, 4].map(i => parseInt(t.slice(i, i + 2), 16)));

let theme = 'light';
const css = {};
/* Shows the theme that the radio buttons ask for, and reads its colours into css. */
function readTheme() {
  const wanted = document.querySelector('input[name=theme]:checked').value;
  theme = wanted === 'auto' ? (dark.matches ? 'dark' : 'light') : wanted;
  document.documentElement.dataset.theme = theme;
  const style = getComputedStyle(document.documentElement);
  for (const name of ['paper', 'ink', 'soft', 'line', 'accent', 'halo']) css[name] = style.getPropertyValue('--' + name).trim();
}

/* A line of a list of rows with a bar for the score. Its button has no action yet. */
function nearItem(text, title, score) {
  const item = document.createElement('li'), button = document.createElement('button');
  const word = document.createElement('span'), bar = document.createElement('span'), value = document.createElement('span');
  word.textContent = text;
  bar.className = 'bar';
  bar.style.setProperty('--share', Math.max(0, 100 * score).toFixed(1) + '%');
  value.className = 'score';
  value.textContent = score.toFixed(3);
  button.title = title;
  button.append(word, bar, value);
  item.append(button);
  return item;
}
