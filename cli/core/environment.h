/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables that other libraries read, with the program's defaults. */
#ifndef EMBLA_CLI_ENVIRONMENT_H
#define EMBLA_CLI_ENVIRONMENT_H

/* Sets what nobody has set. Call it first in main, before an engine is loaded. */
void cli_environment_prepare(void);

#endif
