/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of made-up names, one on each line, and corpora of them. */
#ifndef EMBLA_TESTS_NAME_CORPUS_H
#define EMBLA_TESTS_NAME_CORPUS_H

#include "check.h"
#include "embla_train.h"
#include "scratch.h"

enum { NAME_MOST = 16 }; /* bytes of a name and its newline, at most */

/* Writes `lines` names of the first `syllables` (at most 16) syllables; returns their bytes. */
static inline size_t write_names(char *out, size_t lines, size_t syllables, uint64_t seed)
{
    static const char *const all[] = {"an", "ma", "le", "ri", "o",  "ka", "el", "sa",
                                      "ni", "to", "ja", "be", "lu", "ne", "di", "ra"};
    size_t used = 0;
    for (size_t i = 0; i < lines; i++) {
        for (size_t n = 2 + check_below(&seed, 3); n > 0; n--) {
            const char *s = all[check_below(&seed, syllables)];
            memcpy(out + used, s, strlen(s));
            used += strlen(s);
        }
        out[used++] = '\n';
    }
    return used;
}

/* Opens a text as a corpus; no file stays behind. */
static inline embla_corpus *open_text(const embla_corpus_options *options, const char *text,
                                      size_t bytes)
{
    embla_corpus *corpus = NULL;
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "names.txt"), text, bytes);
    assert_ok(embla_corpus_open(s.path, options, &corpus));
    scratch_free(&s);
    return corpus;
}

#endif
