/* SPDX-License-Identifier: Apache-2.0 */
/* How many CPUs this process may use. */
#ifndef EMBLA_BASE_CPUS_H
#define EMBLA_BASE_CPUS_H

/* The CPUs that the calling thread may run on, but not more than the quota of the process's control
 * group, rounded up. At least 1. Counted once: the quota is read from files. */
int embla_cpus(void);

#endif
