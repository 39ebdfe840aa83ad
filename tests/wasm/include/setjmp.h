/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka.h wants the type. The tests themselves do not jump: wasi-libc's own header asks for
 * exceptions in every file. */
#ifndef EMBLA_TESTS_WASM_SETJMP_H
#define EMBLA_TESTS_WASM_SETJMP_H
typedef long jmp_buf[64];
#endif
