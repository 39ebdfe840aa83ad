/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of unit tests that are left out on Windows, each with its reason. Cases that call what
 * Windows lacks (posix.h) leave themselves out; whole programs are in tests/CMakeLists.txt. */
#ifndef EMBLA_TESTS_WINDOWS_LEFT_OUT_H
#define EMBLA_TESTS_WINDOWS_LEFT_OUT_H

#define X87    "the C library's sine is off for large angles, and ours is held against it"
#define MAPPED "Windows does not cut a file that is mapped"

static const struct {
    const char *name, *reason;
} left_out[] = {
    /* test_elementary */
    {"sines_are_near_those_of_the_c_library", X87},
    {"angles_of_any_size_have_a_sine", X87},
    /* test_io */
    {"rule_c11_a_file_cut_short_is_noticed_one_grown_is_not", MAPPED},
};

#endif
