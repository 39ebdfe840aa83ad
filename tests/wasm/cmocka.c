/* SPDX-License-Identifier: Apache-2.0 */
/* What cmocka needs beside its own source in WebAssembly: longjmp is an exception, whose tag each
 * program has. .ci/wasm_root compiles it. */
__asm__(".tagtype __c_longjmp i32\n.globl __c_longjmp\n__c_longjmp:\n");
