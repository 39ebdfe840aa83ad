/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts with units, as people type them: 1e9, 10G, 512GB, 25 GB/s, 200Gbit/s, 2us. */
#ifndef CLI_CORE_AMOUNT_H
#define CLI_CORE_AMOUNT_H

#include <stdint.h>

#include "core/args.h"

typedef enum {
    CLI_AMOUNT_COUNT, /* 1e9, 10G, 1,000,000: k, M, G and T are decimal */
    CLI_AMOUNT_BYTES, /* 512GB (decimal), 64GiB (binary), 5e11 */
    CLI_AMOUNT_SPEED, /* 25GB/s, 200Gbit/s: with its unit, because bits and bytes are both usual */
    CLI_AMOUNT_TIME   /* 2us, 0.5ms, 18ns, 1s */
} cli_amount;

/* Parses the value of an option; bytes, bytes per second, or seconds. CLI_DONE, or CLI_USAGE after
 * a message. */
int cli_amount_read(const cli_args *args, const char *name, cli_amount kind, double *out);
/* The same for a whole number of 64 bits. */
int cli_amount_whole(const cli_args *args, const char *name, cli_amount kind, int64_t *out);

#endif
