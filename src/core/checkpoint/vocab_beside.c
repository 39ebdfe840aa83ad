/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.vocab.txt, the words beside a file whose format has none.
 *
 * Nobody typed this name, so a file that is there may be anything. Only a file that begins with our
 * first line is replaced, whatever the caller allows for the file that was named.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/vocab.h"
#include "files/durable.h"
#include "files/io.h"

enum { NAME_MOST = 200 }; /* bytes of a file's name (D1) */

static const char ending[] = ".vocab.txt";

static const char *name_in(const char *path)
{
    const char *slash = embla_io_slash(path);
    return slash ? slash + 1 : path;
}

embla_status embla_vocab_beside(const char *path, embla_arena *arena, const char **out)
{
    const char *name = name_in(path), *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    void *memory = NULL;
    EMBLA_TRY(embla_arena_take(arena, length + sizeof ending, "a path", &memory));
    memcpy(memory, path, length);
    memcpy((char *)memory + length, ending, sizeof ending);
    *out = memory;
    return EMBLA_OK;
}

/* *out becomes true if the file begins as embla_vocab_write writes it. */
static embla_status is_ours(const char *path, bool *out)
{
    static const char first[] = "#embla-vocab 1";
    char head[sizeof first] = "";
    embla_handle file = -1;
    EMBLA_TRY(embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &file));
    size_t got = 0;
    embla_status status = embla_io_pread(file, path, 0, sizeof head, head, &got);
    embla_io_drop(file);
    EMBLA_TRY(status);
    bool read = got == sizeof head;
    char after = head[sizeof first - 1];
    *out = read && memcmp(head, first, sizeof first - 1) == 0 && (after == '\n' || after == '\r');
    return EMBLA_OK;
}

embla_status embla_vocab_beside_check(const char *beside, bool *there)
{
    const char *name = name_in(beside);
    embla_file_facts found;
    bool ours = false;
    *there = false;
    if (strlen(name) > NAME_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.128s..: the words go to a file of this name, which has %zu bytes; the "
                          "limit is %d; choose a shorter name, or gguf, which stores words itself",
                          name, strlen(name), NAME_MOST);
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, beside, false, &found, there));
    if (!*there) return EMBLA_OK;
    EMBLA_TRY(embla_durable_target(beside, true)); /* a folder, a link, a device */
    EMBLA_TRY(is_ours(beside, &ours));
    if (ours) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.256s exists and was not written by Embla, so it is never replaced; the "
                      "words would go there; choose another name",
                      beside);
}

embla_status embla_vocab_beside_alone(const char *beside, const char *path)
{
    static const char *const extensions[] = {".npy", ".safetensors"}; /* formats without words */
    size_t stem = strlen(beside) - strlen(ending), room = stem + sizeof ".safetensors";
    embla_arena arena = {0};
    void *memory = NULL;
    embla_status status = embla_arena_take(&arena, room, "a path", &memory);
    for (size_t i = 0; status == EMBLA_OK && i < sizeof extensions / sizeof extensions[0]; i++) {
        embla_file_facts found;
        bool there = false;
        (void)snprintf(memory, room, "%.*s%s", (int)stem, beside, extensions[i]);
        if (strcmp(memory, path) == 0) continue;
        status = embla_durable_facts(EMBLA_HERE, memory, false, &found, &there);
        if (there)
            status = embla_fail(EMBLA_ERR_ARGUMENT,
                                "%.256s has the words of %.256s too, which must not change; choose "
                                "another name",
                                beside, (const char *)memory);
    }
    embla_arena_free(&arena);
    return status;
}
