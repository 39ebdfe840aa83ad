/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libraries at run time. A test can make any of them fail. */
#ifndef EMBLA_BASE_LOAD_H
#define EMBLA_BASE_LOAD_H

#include <stddef.h>

#include "base/status.h"
#include "system/system_threads.h"

/* Loads a library by its path or name, see embla_load_kind; NULL means the program itself. Returns
 * NULL, and a sentence why, if that fails. */
EMBLA_PRIVATE void *embla_load(const char *name, unsigned kind, char *why, size_t size);
EMBLA_PRIVATE void embla_unload(void *library);
/* NULL if the library has no such name. */
EMBLA_PRIVATE void *embla_load_symbol(void *library, const char *name);
/* The path of the library or program that this address is in. False if the system does not tell. */
EMBLA_PRIVATE bool embla_load_home(const void *address, char *out, size_t size);

#endif
