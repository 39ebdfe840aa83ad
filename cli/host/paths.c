/* SPDX-License-Identifier: Apache-2.0 */
#include "host/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"

/* ---- reasons ---- */

static char reason[256];
static embla_system_error reason_error;

const char *cli_why(void)
{
    return reason;
}

embla_system_error cli_why_error(void)
{
    return reason_error;
}

bool cli_because(embla_outcome outcome)
{
    if (embla_worked(outcome)) return true;
    reason_error = outcome.error;
    embla_system_describe(outcome.number, reason, sizeof reason);
    return false;
}

bool cli_because_errno(void)
{
    reason_error = EMBLA_SYSTEM_OTHER;
    (void)snprintf(reason, sizeof reason, "%s", strerror(errno));
    return false;
}

/* ---- facts ---- */

bool cli_facts(const char *path, embla_file_facts *out)
{
    return cli_because(embla_system_facts_at(EMBLA_HERE, path, true, out));
}

bool cli_facts_of_name(const char *path, embla_file_facts *out)
{
    return cli_because(embla_system_facts_at(EMBLA_HERE, path, false, out));
}

bool cli_is_there(const char *path)
{
    embla_file_facts facts;
    return cli_facts(path, &facts);
}

bool cli_is_file(const char *path)
{
    embla_file_facts facts;
    return cli_facts(path, &facts) && facts.kind == EMBLA_REGULAR_FILE;
}

bool cli_is_folder(const char *path)
{
    embla_file_facts facts;
    return cli_facts(path, &facts) && facts.kind == EMBLA_IS_FOLDER;
}

bool cli_is_readable(const char *path)
{
    return embla_system_readable(EMBLA_HERE, path);
}

int64_t cli_file_size(const char *path)
{
    embla_file_facts facts;
    return cli_facts(path, &facts) ? (int64_t)facts.size : 0;
}

/* ---- names ---- */

bool cli_make_folder(const char *path)
{
    return cli_because(embla_system_make_folder(path, 0777));
}

bool cli_remove(const char *path)
{
    return cli_because(embla_system_remove(EMBLA_HERE, path));
}

bool cli_remove_folder(const char *path)
{
    return cli_because(embla_system_remove_folder(EMBLA_HERE, path));
}

void cli_remove_all(const char *path)
{
    embla_file_facts facts;
    cli_names names;
    if (!cli_facts_of_name(path, &facts)) return;
    if (facts.kind != EMBLA_IS_FOLDER) {
        (void)cli_remove(path);
        return;
    }
    if (cli_names_open(path, &names)) {
        for (const char *name; (name = cli_names_next(&names));) {
            const size_t size = strlen(path) + strlen(name) + 2;
            char *inner = malloc(size);
            if (!inner) continue;
            (void)snprintf(inner, size, "%s/%s", path, name);
            cli_remove_all(inner);
            free(inner);
        }
        cli_names_close(&names);
    }
    (void)cli_remove_folder(path);
}

bool cli_rename(const char *from, const char *to, bool replace)
{
    embla_outcome done = embla_system_rename(EMBLA_HERE, from, to, replace);
    if (!replace && done.error == EMBLA_SYSTEM_UNSUPPORTED) {
        done = embla_system_add_name(EMBLA_HERE, from, to);
        if (embla_worked(done)) return cli_remove(from);
        if (done.error != EMBLA_SYSTEM_EXISTS)
            done = embla_system_rename(EMBLA_HERE, from, to, true);
    }
    return cli_because(done);
}

/* ---- new names ---- */

static void fill_random(char *end)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    unsigned char bytes[CLI_RANDOM];
    static unsigned count;
    if (!embla_system_random(bytes, sizeof bytes)) { /* new is enough; it need not be a secret */
        uint64_t mixed = (uint64_t)embla_system_clock() * 0x9e3779b97f4a7c15u + count++;
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(mixed >> (8 * i + 8));
    }
    for (size_t i = 0; i < CLI_RANDOM; i++) end[i] = letters[bytes[i] % 32];
}

/* Makes a folder, or a file if `file` is not NULL. */
static bool make_new(char *path, unsigned mode, embla_handle *file)
{
    enum { TRIES = 100 };
    char *end = path + strlen(path) - CLI_RANDOM;
    embla_outcome done = {0};
    for (int i = 0; i < TRIES; i++) {
        fill_random(end);
        done = file ? embla_system_open(EMBLA_HERE, path, EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW, mode,
                                        file)
                    : embla_system_make_folder(path, mode);
        if (done.error != EMBLA_SYSTEM_EXISTS) break;
    }
    if (!embla_worked(done)) memset(end, 'X', CLI_RANDOM);
    return cli_because(done);
}

bool cli_new_folder(char *path)
{
    return make_new(path, 0700, NULL);
}

bool cli_new_file(char *path, unsigned mode, embla_handle *out)
{
    return make_new(path, mode, out);
}

bool cli_new_temporary(const char *name, char path[CLI_PATH_MOST])
{
    int used = snprintf(path, CLI_PATH_MOST, "%s/%s-XXXXXX", cli_temporary_folder(), name);
    if (used < CLI_PATH_MOST) return cli_new_folder(path);
    (void)snprintf(reason, sizeof reason, "the name of the folder for temporary files has %d bytes",
                   used);
    return false;
}

const char *cli_path_title(const char *path)
{
    const char *slash = embla_system_slash(path);
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- open files ---- */

bool cli_open_write(const char *path, embla_handle *out)
{
    return cli_because(
        embla_system_open(EMBLA_HERE, path, EMBLA_OPEN_WRITE | EMBLA_OPEN_CREATE, 0666, out));
}

bool cli_close(embla_handle file)
{
    return cli_because(embla_system_close(file));
}

bool cli_write_all(embla_handle file, const void *bytes, size_t count, size_t *done)
{
    size_t all = 0;
    bool good = true;
    while (good && all < count) {
        size_t written = 0;
        embla_outcome ended =
            embla_system_write(file, (const char *)bytes + all, count - all, &written);
        if (ended.error == EMBLA_SYSTEM_INTERRUPTED) continue;
        if (embla_worked(ended) && written == 0) ended = embla_system_outcome(EMBLA_SYSTEM_OTHER);
        good = cli_because(ended);
        if (good) all += written;
    }
    if (done) *done = all;
    return good;
}

/* ---- folders ---- */

bool cli_names_open(const char *folder, cli_names *out)
{
    embla_handle file;
    *out = (cli_names){0};
    embla_outcome done =
        embla_system_open(EMBLA_HERE, folder, EMBLA_OPEN_READ | EMBLA_OPEN_FOLDER, 0, &file);
    if (!embla_worked(done)) return cli_because(done);
    done = embla_system_list(file, &out->list);
    if (!embla_worked(done)) (void)embla_system_close(file);
    return cli_because(done);
}

const char *cli_names_next(cli_names *names)
{
    const char *name;
    do {
        if (!embla_worked(embla_system_list_next(names->list, &name))) return NULL;
    } while (name && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0));
    return name;
}

void cli_names_close(cli_names *names)
{
    if (names->list) embla_system_list_end(names->list);
    *names = (cli_names){0};
}

char *cli_copy_text(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}
