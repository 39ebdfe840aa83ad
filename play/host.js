// SPDX-License-Identifier: Apache-2.0
// What the module asks of a system (WASI preview 1): files in memory, a clock, and random bytes. It runs in
// a page, in its worker, and under node for the tests. Nothing is read from anywhere.
'use strict';

const WASI = { OK: 0, BADF: 8, EXIST: 20, INVAL: 28, ISDIR: 31, NOENT: 44, NOSYS: 52, NOTDIR: 54, NOTEMPTY: 55 };
const FOLDER = 3, FILE = 4, TERMINAL = 2; // kinds of files

class Host {
  constructor(say = () => {}) {
    this.say = say; // what the module prints
    this.count = 0; // of files, for their numbers
    this.root = this.make(true);
    this.open = [0, 1, 2].map(() => ({ terminal: true }));
    this.open.push({ node: this.root, at: 0 }); // the folder that a program finds open
  }

  make(folder) {
    return { number: ++this.count, changed: this.count, names: folder ? new Map() : null, bytes: new Uint8Array(0), size: 0 };
  }

  // ---- for the page ----

  put(path, bytes) {
    const names = path.split('/').filter(Boolean), last = names.pop();
    let folder = this.root;
    for (const name of names) {
      if (!folder.names.has(name)) folder.names.set(name, this.make(true));
      folder = folder.names.get(name);
    }
    const file = this.make(false);
    file.bytes = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes;
    file.size = file.bytes.length;
    folder.names.set(last, file);
  }

  get(path) {
    const found = this.walk(this.root, path);
    return found.node && !found.node.names ? found.node.bytes.slice(0, found.node.size) : null;
  }

  // ---- paths ----

  // The folder and the last name of a path, and what is there.
  walk(from, path) {
    const above = [];
    let folder = from;
    const names = path.split('/').filter((name) => name && name !== '.');
    let last = names.pop();
    if (last === undefined) return { folder: null, name: '.', node: from };
    for (const name of names.concat(last === '..' ? [last] : [])) {
      const next = name === '..' ? above.pop() : folder.names && folder.names.get(name);
      if (!next) return { error: folder.names ? WASI.NOENT : WASI.NOTDIR };
      if (name !== '..') above.push(folder);
      folder = next;
    }
    if (last === '..') return { folder: null, name: '.', node: folder };
    if (!folder.names) return { error: WASI.NOTDIR };
    return { folder, name: last, node: folder.names.get(last) };
  }

  // ---- the calls ----

  imports(memory) {
    const view = () => new DataView(memory().buffer), bytes = () => new Uint8Array(memory().buffer);
    const text = (at, length) => new TextDecoder().decode(bytes().slice(at, at + length));
    const handle = (fd) => this.open[fd];
    const at = (fd, path, length) => {
      const folder = handle(fd);
      return folder && folder.node && folder.node.names ? this.walk(folder.node, text(path, length)) : { error: WASI.BADF };
    };
    const big = (out, number) => view().setBigUint64(out, BigInt(number), true);

    const stat = (node, out) => {
      bytes().fill(0, out, out + 64);
      big(out, 1);
      big(out + 8, node.number);
      view().setUint8(out + 16, node.names ? FOLDER : FILE);
      big(out + 24, 1);
      big(out + 32, node.size);
      for (const time of [40, 48, 56]) big(out + time, node.changed * 1e6);
      return WASI.OK;
    };
    const resize = (file, size) => {
      if (size > file.bytes.length) {
        const more = new Uint8Array(Math.max(size, 2 * file.bytes.length));
        more.set(file.bytes.subarray(0, file.size));
        file.bytes = more;
      }
      if (size < file.size) file.bytes.fill(0, size, file.size);
      file.size = size;
    };
    // Each part of a list of buffers, in order; `each` gives how many bytes of it were taken.
    const parts = (list, count, out, each) => {
      let all = 0;
      for (let i = 0; i < count; i++) {
        const from = view().getUint32(list + 8 * i, true), length = view().getUint32(list + 8 * i + 4, true);
        const taken = each(from, length);
        all += taken;
        if (taken < length) break;
      }
      view().setUint32(out, all, true);
      return WASI.OK;
    };
    const read = (file, place) => (from, length) => {
      const taken = Math.max(0, Math.min(length, file.size - place.at));
      bytes().set(file.bytes.subarray(place.at, place.at + taken), from);
      place.at += taken;
      return taken;
    };
    const write = (file, place) => (from, length) => {
      if (place.at + length > file.size) resize(file, place.at + length);
      file.bytes.set(bytes().subarray(from, from + length), place.at);
      file.changed = ++this.count;
      place.at += length;
      return length;
    };
    const file = (fd) => handle(fd) && handle(fd).node && !handle(fd).node.names ? handle(fd).node : null;

    const calls = {
      args_sizes_get: (count, size) => { view().setUint32(count, 0, true); view().setUint32(size, 0, true); return WASI.OK; },
      args_get: () => WASI.OK,
      environ_sizes_get: (count, size) => { view().setUint32(count, 0, true); view().setUint32(size, 0, true); return WASI.OK; },
      environ_get: () => WASI.OK,
      clock_res_get: (clock, out) => { big(out, 1000); return WASI.OK; },
      clock_time_get: (clock, precision, out) => { big(out, Math.round(performance.now() * 1e6)); return WASI.OK; },
      random_get: (out, length) => {
        for (let i = 0; i < length; i += 65536)
          crypto.getRandomValues(bytes().subarray(out + i, out + Math.min(length, i + 65536)));
        return WASI.OK;
      },
      sched_yield: () => WASI.OK,
      proc_exit: (code) => { throw new Error('the module ended with ' + code); },

      fd_prestat_get: (fd, out) => {
        if (fd !== 3) return WASI.BADF;
        view().setUint32(out, 0, true);
        view().setUint32(out + 4, 1, true);
        return WASI.OK;
      },
      fd_prestat_dir_name: (fd, out) => { bytes()[out] = 47; return fd === 3 ? WASI.OK : WASI.BADF; },
      fd_fdstat_get: (fd, out) => {
        if (!handle(fd)) return WASI.BADF;
        bytes().fill(0, out, out + 24);
        view().setUint8(out, handle(fd).terminal ? TERMINAL : handle(fd).node.names ? FOLDER : FILE);
        view().setUint16(out + 2, handle(fd).append ? 1 : 0, true);
        big(out + 8, 0x1fffffffn);
        big(out + 16, 0x1fffffffn);
        return WASI.OK;
      },
      fd_fdstat_set_flags: () => WASI.OK,
      fd_filestat_get: (fd, out) => (handle(fd) && handle(fd).node ? stat(handle(fd).node, out) : WASI.BADF),
      fd_filestat_set_size: (fd, size) => { if (!file(fd)) return WASI.BADF; resize(file(fd), Number(size)); return WASI.OK; },
      fd_filestat_set_times: () => WASI.OK,
      fd_advise: () => WASI.OK,
      fd_allocate: () => WASI.NOSYS,
      fd_sync: () => WASI.OK,
      fd_datasync: () => WASI.OK,
      fd_close: (fd) => { if (!handle(fd)) return WASI.BADF; this.open[fd] = undefined; return WASI.OK; },
      fd_seek: (fd, offset, from, out) => {
        if (!file(fd)) return WASI.BADF;
        const place = Number(offset) + (from === 0 ? 0 : from === 1 ? handle(fd).at : file(fd).size);
        if (place < 0) return WASI.INVAL;
        handle(fd).at = place;
        big(out, place);
        return WASI.OK;
      },
      fd_tell: (fd, out) => { if (!file(fd)) return WASI.BADF; big(out, handle(fd).at); return WASI.OK; },
      fd_read: (fd, list, count, out) => (file(fd) ? parts(list, count, out, read(file(fd), handle(fd))) : WASI.BADF),
      fd_pread: (fd, list, count, offset, out) => (file(fd) ? parts(list, count, out, read(file(fd), { at: Number(offset) })) : WASI.BADF),
      fd_write: (fd, list, count, out) => {
        if (handle(fd) && handle(fd).terminal)
          return parts(list, count, out, (from, length) => { this.say(text(from, length)); return length; });
        if (!file(fd)) return WASI.BADF;
        if (handle(fd).append) handle(fd).at = file(fd).size;
        return parts(list, count, out, write(file(fd), handle(fd)));
      },
      fd_pwrite: (fd, list, count, offset, out) => (file(fd) ? parts(list, count, out, write(file(fd), { at: Number(offset) })) : WASI.BADF),
      fd_readdir: (fd, out, room, cookie, used) => {
        const folder = handle(fd) && handle(fd).node;
        if (!folder || !folder.names) return WASI.BADF;
        const names = [['.', folder], ['..', folder], ...folder.names];
        let place = 0;
        for (let i = Number(cookie); i < names.length && place < room; i++) {
          const name = new TextEncoder().encode(names[i][0]), entry = new Uint8Array(24 + name.length);
          const fields = new DataView(entry.buffer);
          fields.setBigUint64(0, BigInt(i + 1), true);
          fields.setBigUint64(8, BigInt(names[i][1].number), true);
          fields.setUint32(16, name.length, true);
          fields.setUint8(20, names[i][1].names ? FOLDER : FILE);
          entry.set(name, 24);
          const fits = entry.subarray(0, Math.min(entry.length, room - place));
          bytes().set(fits, out + place);
          place += fits.length;
        }
        view().setUint32(used, place, true);
        return WASI.OK;
      },

      path_open: (fd, look, path, length, how, rights, inherited, flags, out) => {
        const found = at(fd, path, length);
        if (found.error) return found.error;
        const create = how & 1, folder = how & 2, fresh = how & 4, empty = how & 8;
        if (found.node && create && fresh) return WASI.EXIST;
        if (!found.node && !create) return WASI.NOENT;
        if (found.node && folder && !found.node.names) return WASI.NOTDIR;
        let node = found.node;
        if (!node) found.folder.names.set(found.name, (node = this.make(false)));
        if (empty && !node.names) resize(node, 0);
        let number = this.open.indexOf(undefined, 3);
        if (number < 0) number = this.open.length;
        this.open[number] = { node, at: 0, append: (flags & 1) !== 0 };
        view().setUint32(out, number, true);
        return WASI.OK;
      },
      path_filestat_get: (fd, look, path, length, out) => {
        const found = at(fd, path, length);
        return found.error || (found.node ? stat(found.node, out) : WASI.NOENT);
      },
      path_filestat_set_times: () => WASI.OK,
      path_create_directory: (fd, path, length) => {
        const found = at(fd, path, length);
        if (found.error) return found.error;
        if (found.node) return WASI.EXIST;
        found.folder.names.set(found.name, this.make(true));
        return WASI.OK;
      },
      path_remove_directory: (fd, path, length) => {
        const found = at(fd, path, length);
        if (found.error || !found.node || !found.folder) return found.error || WASI.NOENT;
        if (!found.node.names) return WASI.NOTDIR;
        if (found.node.names.size > 0) return WASI.NOTEMPTY;
        found.folder.names.delete(found.name);
        return WASI.OK;
      },
      path_unlink_file: (fd, path, length) => {
        const found = at(fd, path, length);
        if (found.error || !found.node) return found.error || WASI.NOENT;
        if (found.node.names) return WASI.ISDIR;
        found.folder.names.delete(found.name);
        return WASI.OK;
      },
      path_rename: (fd, from, fromLength, other, to, toLength) => {
        const old = at(fd, from, fromLength), place = at(other, to, toLength);
        if (old.error || place.error) return old.error || place.error;
        if (!old.node) return WASI.NOENT;
        if (place.node && place.node.names && place.node.names.size > 0) return WASI.NOTEMPTY;
        old.folder.names.delete(old.name);
        place.folder.names.set(place.name, old.node);
        return WASI.OK;
      },
      path_readlink: () => WASI.INVAL, // there are no links
      path_link: () => WASI.NOSYS,
      path_symlink: () => WASI.NOSYS,
      poll_oneoff: () => WASI.NOSYS,
    };
    // What the module asks for and is not here, does not work.
    return new Proxy(calls, { get: (known, name) => known[name] || (() => WASI.NOSYS), has: () => true });
  }
}

// The functions of play.h, with texts as texts and answers as objects.
class Play {
  constructor(module, host) {
    let memory;
    this.host = host;
    const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: host.imports(() => memory) });
    memory = instance.exports.memory;
    this.calls = instance.exports;
    this.calls._initialize();
  }

  // Calls f with places in the module's memory that hold these texts and arrays; they are given back.
  with(values, f) {
    const places = values.map((value) => {
      const bytes = typeof value === 'string' ? new TextEncoder().encode(value + '\0')
        : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      const place = this.calls.play_take(bytes.length);
      if (!place) throw new Error('there is not enough memory');
      new Uint8Array(this.calls.memory.buffer).set(bytes, place);
      return place;
    });
    try {
      return f(...places);
    } finally {
      places.forEach((place) => this.calls.play_give(place));
    }
  }

  text(place) {
    const bytes = new Uint8Array(this.calls.memory.buffer);
    return new TextDecoder().decode(bytes.slice(place, bytes.indexOf(0, place)));
  }

  // An answer; an error becomes an exception with its sentence.
  answer(place) {
    const found = JSON.parse(this.text(place));
    if (found.error !== undefined) throw new Error(found.error);
    return found;
  }

  handle(place) {
    if (!place) throw new Error(this.text(this.calls.play_error()));
    return place;
  }

  version() { return this.answer(this.calls.play_version()); }
  open(path) { return this.with([path], (p) => this.handle(this.calls.play_open(p))); }
  close(model) { this.calls.play_close(model); }
  about(model) { return this.answer(this.calls.play_about(model)); }
  tokens(model, text) { return this.with([text], (p) => this.answer(this.calls.play_tokens(model, p))); }
  embed(model, ids, first = 0, kind = -1) {
    return this.with([Int32Array.from(ids)], (p) => this.answer(this.calls.play_embed(model, p, ids.length, first, kind)));
  }
  textOf(model, ids) { return this.with([Int32Array.from(ids)], (p) => this.answer(this.calls.play_text(model, p, ids.length))).text; }
  oneHot(model, id) { return this.answer(this.calls.play_one_hot(model, id)); }
  compare(model, a, b, head = 0) { return this.answer(this.calls.play_compare(model, a, b, head)); }
  compareVectors(a, b) {
    return this.with([Float32Array.from(a), Float32Array.from(b)], (p, q) => this.answer(this.calls.play_compare_vectors(p, q, a.length)));
  }
  near(model, id, top, head = 0) { return this.answer(this.calls.play_near(model, id, top, head)).near; }
  analogy(model, plus, minus, top, keep = false) {
    return this.with([Int32Array.from(plus), Int32Array.from(minus)], (p, m) =>
      this.answer(this.calls.play_analogy(model, p, plus.length, m, minus.length, top, keep ? 1 : 0))).near;
  }
  plane(model, basis = []) {
    return this.with([Int32Array.from(basis)], (p) => this.answer(this.calls.play_plane(model, p, basis.length)));
  }
  predict(model, ids, temperature, top) {
    return this.with([Int32Array.from(ids)], (p) => this.answer(this.calls.play_predict(model, p, ids.length, temperature, top)));
  }
  ngram(path, ids) {
    return this.with([path, Int32Array.from(ids)], (p, q) => this.answer(this.calls.play_ngram(p, q, ids.length)));
  }

  cutter(path) { return this.with([path], (p) => this.handle(this.calls.play_cutter_open(p))); }
  cutterTrain(text, path, tokens) {
    return this.with([text, path], (t, p) => this.handle(this.calls.play_cutter_train(t, p, tokens)));
  }
  cutterClose(cutter) { this.calls.play_cutter_close(cutter); }
  cut(cutter, text) { return this.with([text], (p) => this.answer(this.calls.play_cut(cutter, p))); }

  cost({ rows, dim, positions = 0, layers = 0, untied = false }, dtype, name = null) {
    const sizes = new DataView(new ArrayBuffer(40));
    [rows, dim, positions, layers].forEach((size, i) => sizes.setFloat64(8 * i, size, true));
    sizes.setInt32(32, untied ? 1 : 0, true);
    return this.with([sizes, dtype, name || ''], (p, q, r) => this.answer(this.calls.play_cost(p, q, name === null ? 0 : r)));
  }
  costModels() { return this.answer(this.calls.play_cost_models()).models; }

  // Without `tokenizer` a token is a word (words > 0) or a character.
  train(path, { rate = 0, words = 0, dim = 0, steps = 0, seed = 0, positions = 0, tied = 0, batch = 0, tokenizer = null }) {
    const choices = new DataView(new ArrayBuffer(40));
    choices.setFloat64(0, rate, true);
    [words, dim, steps, seed, positions, tied, batch].forEach((value, i) => choices.setInt32(8 + 4 * i, value, true));
    return this.with([path, tokenizer === null ? '' : tokenizer, choices], (p, t, c) =>
      this.handle(this.calls.play_train(p, tokenizer === null ? 0 : t, c)));
  }
  trainClose(training) { this.calls.play_train_close(training); }
  trainAbout(training) { return this.answer(this.calls.play_train_about(training)); }
  trainSteps(training, steps) { return this.answer(this.calls.play_train_steps(training, steps)); }
  // Copies of the rows, and of learned positions (null without them).
  trainRows(training, count) { return this.floats(this.calls.play_train_rows(training), count); }
  trainPositions(training, count) { return this.floats(this.calls.play_train_positions(training), count); }
  trainPlane(training, aim = null) {
    if (!aim) return this.answer(this.calls.play_train_plane(training, 0));
    return this.with([aim], (p) => this.answer(this.calls.play_train_plane(training, p)));
  }
  trainNear(training, id, top) { return this.answer(this.calls.play_train_near(training, id, top)).near; }
  trainSample(training, temperature, seed) { return this.answer(this.calls.play_train_sample(training, temperature, seed)); }
  trainSave(training, folder) { return this.with([folder], (p) => this.answer(this.calls.play_train_save(training, p))).folder; }

  floats(place, count) { return place ? new Float32Array(this.calls.memory.buffer.slice(place, place + 4 * count)) : null; }
}
