// SPDX-License-Identifier: Apache-2.0
// Pictures: tables as cells of colour, rows on a plane, the loss. They draw what the library has computed.
'use strict';

// A canvas as wide as its place; draw(pen, width, height) is called when it is first seen, when its size
// changes and when the theme changes.
const pictures = new Set();
function picture(height, label, draw, more = {}) {
  const canvas = make('canvas', { class: 'picture' + (more.plane ? ' plane' : ''), role: 'img', 'aria-label': label });
  const pen = canvas.getContext('2d');
  canvas.draw = () => {
    const width = canvas.clientWidth, tall = typeof height === 'function' ? height(width) : height;
    if (!canvas.isConnected || width === 0) return;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(tall * ratio)) {
      canvas.style.height = tall + 'px';
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(tall * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, tall);
    draw(pen, width, tall);
  };
  canvas.label = (text) => canvas.setAttribute('aria-label', text);
  pictures.add(canvas);
  sizes.observe(canvas);
  return canvas;
}
// Those that are replaced are forgotten.
function forget(root) {
  root.querySelectorAll('canvas').forEach((canvas) => { pictures.delete(canvas); sizes.unobserve(canvas); });
}
const sizes = new ResizeObserver((entries) => entries.forEach((entry) => entry.target.draw()));
function drawAll() {
  for (const canvas of pictures) {
    if (canvas.isConnected) canvas.draw();
    else pictures.delete(canvas), sizes.unobserve(canvas);
  }
}

/* ---- cells of colour ---- */

const ends = { light: { low: [194, 81, 12], high: [31, 95, 208], mid: [255, 255, 255] }, dark: { low: [247, 154, 99], high: [110, 168, 247], mid: [26, 29, 36] } };

function cellColor(x, most) {
  const { low, high, mid } = ends[theme], share = Math.min(1, Math.abs(x) / (most || 1)) ** 0.75, end = x < 0 ? low : high;
  return `rgb(${mid.map((c, i) => Math.round(c + (end[i] - c) * share))})`;
}

// A value that most numbers stay below, so that a few large ones do not make all others pale.
function range(rows) {
  const sizes = [];
  for (const row of rows) for (const x of row) if (x !== null) sizes.push(Math.abs(x));
  sizes.sort((a, b) => a - b);
  return sizes[Math.floor(0.97 * (sizes.length - 1))] || 1;
}

// One row as a strip, for lines of several.
function strip(row, most, label) {
  return picture(20, label, (pen, width, height) => row.forEach((x, k) => {
    pen.fillStyle = x === null ? css.line : cellColor(x, most);
    pen.fillRect(k * width / row.length, 0, width / row.length + 0.4, height);
  }));
}

/* A table with marks at some rows: rows is a list of lists or a typed array, dim numbers each. */
function tablePicture(count, dim, height, label, data) {
  return picture(height, label, (pen, width, tall) => {
    const { value, most, lit, name } = data(), left = 84, each = tall / count, wide = (width - left) / dim;
    for (let r = 0; r < count; r++) {
      const y = Math.round(r * each), next = Math.round((r + 1) * each);
      for (let k = 0; k < dim; k++) {
        pen.fillStyle = cellColor(value(r, k), most);
        pen.fillRect(left + k * wide, y, wide + 0.4, Math.max(1, next - y));
      }
    }
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    if (lit.size > 0 && each < 8) { // thin rows: all others step back
      pen.globalAlpha = 0.6;
      pen.fillStyle = css.paper;
      for (let r = 0; r < count; r++) if (!lit.has(r)) pen.fillRect(left, Math.round(r * each), width - left, Math.round((r + 1) * each) - Math.round(r * each));
      pen.globalAlpha = 1;
    }
    const label = (text, y, on) => { pen.fillStyle = on ? css.ink : css.soft; pen.fillText(shortened(text), left - 11, Math.max(8, y), left - 12); };
    let last = -20, names = []; // lit rows that are too near to each other for a line each share one
    for (let r = 0; r < count; r++) {
      const on = lit.has(r), y = (r + 0.5) * each;
      if (on) {
        pen.strokeStyle = pen.fillStyle = css.lit;
        pen.fillRect(left - 8, Math.round(r * each), 6, Math.max(2, Math.round((r + 1) * each) - Math.round(r * each)));
        pen.lineWidth = 1.5;
        pen.strokeRect(left, each >= 5 ? r * each + 0.75 : y - 2.5, width - left - 1, each >= 5 ? each - 1.5 : 5);
        if (y - last < 11 && names.length > 0) { names.push(name(r)); continue; }
        if (names.length > 0) label(names.join(', '), last, true);
        names = [name(r)], last = y;
      } else if (each >= 11 && y - last >= 13) {
        label(name(r), y, false);
        if (names.length === 0) last = y;
      }
    }
    if (names.length > 0) label(names.join(', '), last, true);
    pen.textAlign = 'left';
  });
}

/* ---- rows on a plane ---- */

// data(): { xy: [[x, y] ..], name: row => text, chosen, lines: [[from, to, strong] ..], only: Set or null }
function planePicture(height, label, data, pick) {
  let places = [];
  const canvas = picture(height, label, (pen, width, tall) => {
    const { xy, name, chosen = -1, lines = [], only = null, box, marked = null } = data();
    const around = box || boxOf(only ? xy.filter((_, row) => only.has(row)) : xy), margin = Math.min(40, width * 0.08);
    const scale = Math.min((width - 2 * margin) / (around[1] - around[0] || 1), (tall - 2 * margin) / (around[3] - around[2] || 1));
    places = xy.map(([x, y], row) => (x === null || (only && !only.has(row)) ? null
      : [width / 2 + (x - (around[0] + around[1]) / 2) * scale, tall / 2 - (y - (around[2] + around[3]) / 2) * scale]));
    const lit = new Set([chosen, ...lines.flat()]), many = places.filter(Boolean).length > 60;
    for (const [from, to, strong, arrow] of lines) if (places[from] && places[to]) drawLine(pen, places[from], places[to], strong, arrow);
    places.forEach((place, row) => {
      if (!place) return;
      pen.globalAlpha = lit.has(row) || !many || chosen < 0 ? 1 : 0.55;
      pen.beginPath();
      pen.arc(...place, row === chosen ? 7 : lit.has(row) ? 5 : many ? 3.5 : 5, 0, 7);
      pen.fillStyle = row === chosen ? css.ink : marked && marked.has(row) ? css.lit : `rgb(${tints[theme][many ? 0 : row % 20]})`;
      pen.fill();
    });
    pen.globalAlpha = 1;
    nameThem(pen, places, name, lit, chosen, width, tall, lines.filter((line) => line[3]));
  }, { plane: true });
  canvas.addEventListener('click', (event) => {
    if (!pick) return;
    const place = canvas.getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
    let best = -1, least = 18;
    places.forEach((at, row) => {
      const far = at ? Math.hypot(at[0] - x, at[1] - y) : Infinity;
      if (far < least) best = row, least = far;
    });
    if (best >= 0) pick(best);
  });
  return canvas;
}

function boxOf(xy) {
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of xy) if (x !== null) {
    box[0] = Math.min(box[0], x), box[1] = Math.max(box[1], x);
    box[2] = Math.min(box[2], y), box[3] = Math.max(box[3], y);
  }
  return isFinite(box[0]) ? box : [-1, 1, -1, 1];
}

function drawLine(pen, from, to, strong, arrow) {
  const far = Math.hypot(to[0] - from[0], to[1] - from[1]), along = far > 0 ? [(to[0] - from[0]) / far, (to[1] - from[1]) / far] : [0, 0];
  pen.strokeStyle = pen.fillStyle = css.accent;
  pen.globalAlpha = 0.25 + 0.6 * Math.max(0, strong);
  pen.lineWidth = arrow ? 2.5 : 1.6;
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(to[0] - along[0] * (arrow ? 12 : 0), to[1] - along[1] * (arrow ? 12 : 0));
  pen.stroke();
  if (arrow && far > 16) {
    const tip = [to[0] - along[0] * 7, to[1] - along[1] * 7], back = [tip[0] - along[0] * 12, tip[1] - along[1] * 12];
    pen.beginPath();
    pen.moveTo(...tip);
    pen.lineTo(back[0] - along[1] * 5, back[1] + along[0] * 5);
    pen.lineTo(back[0] + along[1] * 5, back[1] - along[0] * 5);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

// Names beside their points, first those that matter, where they cover no other name.
// A name of an arrow's end is on the side away from the arrow.
function nameThem(pen, places, name, lit, chosen, width, tall, arrows) {
  const taken = [], order = places.map((_, row) => row).filter((row) => places[row]);
  order.sort((a, b) => (b === chosen) - (a === chosen) || lit.has(b) - lit.has(a));
  pen.font = '13px system-ui, sans-serif';
  pen.textBaseline = 'alphabetic';
  pen.lineJoin = 'round';
  for (const row of order) {
    if (taken.length > 90) break;
    const text = shortened(name(row)), [x, y] = places[row], w = pen.measureText(text).width;
    const sides = [[x + 9, y - 7], [x - 9 - w, y - 7], [x - w / 2, y - 24], [x - w / 2, y + 9]];
    const arrow = arrows.find(([from, to]) => from === row || to === row), other = arrow && places[arrow[0] === row ? arrow[1] : arrow[0]];
    const far = ([left, top]) => Math.hypot(left + w / 2 - other[0], top + 8 - other[1]);
    const spot = (other ? sides.sort((a, b) => far(b) - far(a)) : sides).find(([left, top]) =>
      left > 1 && left + w < width - 1 && top > 1 && top + 16 < tall - 1 &&
      !taken.some((t) => left < t[0] + t[2] + 4 && left + w + 4 > t[0] && top < t[1] + 16 && top + 16 > t[1]));
    if (!spot) continue;
    taken.push([spot[0], spot[1], w]);
    pen.lineWidth = 3.5;
    pen.strokeStyle = css.halo;
    pen.strokeText(text, spot[0], spot[1] + 12);
    pen.fillStyle = lit.size > 1 && !lit.has(row) ? css.soft : css.ink;
    pen.fillText(text, spot[0], spot[1] + 12);
  }
}

/* ---- the loss ---- */

// data(): { losses: [[step, loss, mean] ..], steps, guess }, or null
function lossPicture(label, data) {
  return picture(150, label, (pen, width, tall) => {
    const known = data();
    if (!known) return;
    const { losses, steps, guess } = known, left = 44, base = tall - 22, right = width - 8;
    const most = Math.max(guess * 1.08, ...losses.slice(0, 40).map((point) => Math.min(point[1], guess * 1.3)));
    const least = Math.min(guess * 0.5, ...losses.map((point) => point[2])) * 0.95;
    const x = (step) => left + (right - left) * step / Math.max(1, steps), y = (loss) => 8 + (base - 8) * (most - loss) / (most - least);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    pen.fillStyle = css.soft;
    pen.strokeStyle = css.line;
    pen.lineWidth = 1;
    for (let i = 0; i <= 2; i++) {
      const loss = least + (most - least) * i / 2;
      pen.textAlign = 'right';
      pen.fillText(loss.toFixed(2), left - 6, y(loss));
      pen.beginPath();
      pen.moveTo(left, y(loss));
      pen.lineTo(right, y(loss));
      pen.stroke();
      const step = Math.round(steps * i / 2);
      pen.textAlign = i === 0 ? 'left' : i === 2 ? 'right' : 'center';
      pen.fillText(number(step), x(step), tall - 8);
    }
    pen.setLineDash([4, 4]);
    pen.strokeStyle = css.soft;
    pen.beginPath();
    pen.moveTo(left, y(guess));
    pen.lineTo(right, y(guess));
    pen.stroke();
    pen.setLineDash([]);
    pen.textAlign = 'right';
    pen.fillText(TEXT.learn.guessing + ' ' + guess.toFixed(2), right, y(guess) - 9);
    for (const [which, alpha, thick] of [[1, 0.3, 1], [2, 1, 2]]) {
      pen.globalAlpha = alpha;
      pen.strokeStyle = css.accent;
      pen.lineWidth = thick;
      pen.beginPath();
      for (const point of losses) pen.lineTo(x(point[0]), Math.max(2, Math.min(base, y(point[which]))));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.textAlign = 'left';
  });
}

/* ---- lists with bars ---- */

// rows: [name, share, number, number] ..
function bars(rows, label) {
  return make('ul', { class: 'bars', 'aria-label': label }, ...rows.map(([name, share, a, b]) => {
    const bar = make('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', (100 * Math.min(1, Math.max(0, share))).toFixed(1) + '%');
    return make('li', {}, make('span', { class: 'name' }, name), bar, make('span', { class: 'n' }, a), make('span', { class: 'n' }, b));
  }));
}

// Rows that are near; with `pick` each can be chosen.
function nearList(near, name, label, pick) {
  const list = make('ol', { class: 'near list', 'aria-label': label });
  for (const { id, score } of near) {
    const item = nearItem(name(id), '', score), line = item.firstChild;
    line.type = 'button';
    line.removeAttribute('title');
    if (pick) line.addEventListener('click', () => pick(id));
    else line.replaceWith(make('div', { class: 'line' }, ...line.childNodes));
    list.append(item);
  }
  return list;
}
