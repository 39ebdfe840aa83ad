/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that put a function in the place of one of Unix; the library does not call those here.
 */
#ifndef EMBLA_TESTS_WINDOWS_DLFCN_H
#define EMBLA_TESTS_WINDOWS_DLFCN_H

#define RTLD_NEXT            NULL
#define dlsym(library, name) ((void)(library), (void)(name), NULL)

#endif
