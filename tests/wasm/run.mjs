// SPDX-License-Identifier: Apache-2.0
// Runs a WebAssembly program under node's WASI. It sees all files of this machine, the environment
// and the folder in which it was started.
//   usage: node --no-warnings --no-flush-bytecode run.mjs PROGRAM.wasm [ARGUMENTS..]
// node drops the code of this file while a long program runs, and then ends with an error, unless
// --no-flush-bytecode tells it not to.
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({
    version: 'preview1',
    args: [program, ...args],
    env: { ...process.env, PWD: process.cwd() },
    preopens: { '/': '/' },
    returnOnExit: true,
});
const compiled = await WebAssembly.compile(readFileSync(program));
const instance = await WebAssembly.instantiate(compiled, wasi.getImportObject());
try {
    process.exitCode = wasi.start(instance);
} catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    console.error(`${program}: ${error.stack}`);
    process.exitCode = 134; // as after abort
}
