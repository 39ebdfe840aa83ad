/* SPDX-License-Identifier: Apache-2.0 */
/* For a test that has its own getrandom, which the library does not call here. */
#ifndef EMBLA_TESTS_WINDOWS_RANDOM_H
#define EMBLA_TESTS_WINDOWS_RANDOM_H

#endif
