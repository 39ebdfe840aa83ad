/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of unit tests that are left out in WebAssembly, each with its reason. Cases that call
 * what WASI lacks (posix.h) leave themselves out; whole programs are in tests/CMakeLists.txt. */
#ifndef EMBLA_TESTS_WASM_LEFT_OUT_H
#define EMBLA_TESTS_WASM_LEFT_OUT_H

static const struct {
    const char *name, *reason;
} left_out[] = {
    {"", ""},
};

#endif
