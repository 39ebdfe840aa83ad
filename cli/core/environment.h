/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that other libraries read, with the program's defaults. */
#ifndef CLI_CORE_ENVIRONMENT_H
#define CLI_CORE_ENVIRONMENT_H

/* Sets what nobody has set, and starts the program again where OpenMP must see it. Call it first
 * in main, before a file is open or an engine is loaded. */
void cli_environment_prepare(char **argv);

#endif
