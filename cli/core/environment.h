/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of the environment variables that other libraries read. */
#ifndef CLI_CORE_ENVIRONMENT_H
#define CLI_CORE_ENVIRONMENT_H

/* Sets the variables that are not set. Call it in main, before an engine is loaded. */
void cli_environment_prepare(void);

#endif
