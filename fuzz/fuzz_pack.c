/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a pack. Promises:
 *   - what is refused is refused with a sentence that names the file;
 *   - an accepted manifest has rows and bundles whose pages fit in a file, and no page has more
 *     than fits;
 *   - it can be printed, and read back as the same manifest.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/pack_manifest.h"
#include "input.h"

static void check_pages(const embla_pack_pages *p, uint64_t count, uint64_t size)
{
    PROMISE(p->group >= 1 && p->group * p->bytes <= p->group_bytes);
    PROMISE(p->group_bytes % EMBLA_PACK_PAGE == 0);
    PROMISE(size / p->group_bytes == (count + p->group - 1) / p->group);
    PROMISE(size <= (uint64_t)INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_pack pack, again;
    const char *printed = NULL, *twice = NULL;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    embla_status status = embla_pack_parse(text, "manifest", &pack);
    if (status != EMBLA_OK) {
        PROMISE(strstr(embla_error(), "manifest") != NULL);
    } else {
        PROMISE(pack.rows >= 1 && pack.bundles >= 0 &&
                (pack.bundles > 0) == (pack.rows_per_ngram > 0));
        check_pages(&pack.row_pages, (uint64_t)pack.rows, pack.rows_size);
        check_pages(&pack.bundle_pages, (uint64_t)pack.bundles, pack.bundles_size);
        PROMISE(embla_pack_block_count(&pack) >= 1);
        PROMISE(embla_pack_print(&pack, &printed) == EMBLA_OK);
        PROMISE(embla_pack_parse(printed, "manifest", &again) == EMBLA_OK);
        PROMISE(embla_pack_print(&again, &twice) == EMBLA_OK);
        PROMISE(strcmp(printed, twice) == 0 && again.rows == pack.rows &&
                again.row_bytes == pack.row_bytes);
        embla_pack_free(&again);
    }
    embla_pack_free(&pack);
    free(text);
    return 0;
}
