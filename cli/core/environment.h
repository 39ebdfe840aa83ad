/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the environment variables that other libraries read. */
#ifndef CLI_CORE_ENVIRONMENT_H
#define CLI_CORE_ENVIRONMENT_H

/* Sets the variables that are not set, and re-executes the program if OpenMP must see them. Call it
 * first in main, before a file is opened or an engine is loaded. */
void cli_environment_prepare(char **argv);

#endif
