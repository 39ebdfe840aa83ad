// SPDX-License-Identifier: Apache-2.0
// Runs a WebAssembly program under node's WASI. It sees all files of this machine, the environment
// and the folder in which it was started.
//   usage: node --no-warnings run.mjs PROGRAM.wasm [ARGUMENTS..]
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { WASI } from 'node:wasi';

// In node 20 a call of WASI may collect garbage. On the short way from WebAssembly to such a call,
// V8 takes it that none is collected: objects and code that are in use are freed, and node crashes
// in the middle of any program. A function between them keeps to the long way, and so does this:
setFlagsFromString('--no-turbo-fast-api-calls');
const long = (call) => (...values) => call(...values);

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({
    version: 'preview1',
    args: [program, ...args],
    env: { ...process.env, PWD: process.cwd() },
    preopens: { '/': '/' },
    returnOnExit: true,
});
const { wasi_snapshot_preview1: calls } = wasi.getImportObject();
const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(program)), {
    wasi_snapshot_preview1: Object.fromEntries(
        Object.entries(calls).map(([name, call]) => [name, long(call)])),
});
try {
    process.exitCode = wasi.start(instance);
} catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    console.error(`${program}: ${error.stack}`);
    process.exitCode = 134; // as after abort
}
