/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of analogies and as one of pairs. At most one of the two is accepted. Then
 * every question uses existing words, each word is stored once, sections are consecutive, and
 * scores are finite. Written out again, the file is read the same. An error names the file and
 * leaves nothing allocated. */
#include <math.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "input.h"
#include "see/eval.h"

static bool read_file(const void *data, size_t size, embla_eval_kind kind, embla_eval_file *out)
{
    embla_map *map = NULL;
    size_t live = embla_mem_live();
    PROMISE(embla_map_bytes(data, size, "input", &map) == EMBLA_OK);
    embla_status status = embla_eval_read(map, kind, out);
    embla_map_free(map);
    if (status == EMBLA_OK) return true;
    PROMISE(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED);
    PROMISE(strncmp(embla_error(), "input", 5) == 0 && embla_mem_live() == live);
    return false;
}

/* ---- promises ---- */

static void check_word(const embla_eval_file *f, size_t w)
{
    const embla_name *word = &f->words[w];
    PROMISE(word->length > 0 && word->bytes[word->length] == '\0');
    PROMISE(strlen(word->bytes) == word->length && word->number > 0);
    PROMISE(embla_utf8_valid(word->bytes, word->length) == word->length);
    for (size_t i = 0; i < word->length; i++) {
        char c = word->bytes[i];
        PROMISE(c != '\n' && c != '\r');
        PROMISE((c != ' ' && c != '\t') || f->kind == EMBLA_EVAL_PAIRS);
    }
    for (size_t other = w < 64 ? 0 : w - 64; other < w; other++) /* only some of many */
        PROMISE(strcmp(f->words[other].bytes, word->bytes) != 0);
}

static void check_file(const embla_eval_file *f, embla_eval_kind kind, size_t size)
{
    size_t first = 0, times = 0, seen = 0;
    PROMISE(f->kind == kind && f->count > 0 && f->count <= size && f->word_count > 0);
    for (size_t i = 0; i < f->count * (size_t)kind; i++) {
        PROMISE(f->items[i] <= seen &&
                f->items[i] < f->word_count); /* numbered in the order of first use */
        seen += f->items[i] == seen;
    }
    PROMISE(seen == f->word_count);
    for (size_t w = 0; w < f->word_count; w++) {
        check_word(f, w);
        times += f->words[w].number;
    }
    PROMISE(times == f->count * (size_t)kind);
    for (size_t s = 0; s < f->section_count; s++) {
        PROMISE(f->sections[s].first == first && f->sections[s].name[0]);
        first += f->sections[s].count;
    }
    PROMISE(first == (kind == EMBLA_EVAL_ANALOGIES ? f->count : 0));
    for (size_t q = 0; kind == EMBLA_EVAL_PAIRS && q < f->count; q++)
        PROMISE(isfinite(f->scores[q]));
}

/* ---- written and read again ---- */

static const char *word_at(const embla_eval_file *f, size_t q, size_t i)
{
    return f->words[f->items[q * (size_t)f->kind + i]].bytes;
}

/* A word that begins a comment or a section, or contains a tab, cannot be written out. */
static bool plain(const embla_eval_file *f)
{
    for (size_t w = 0; w < f->word_count; w++)
        if (strchr("#:", f->words[w].bytes[0]) || strchr(f->words[w].bytes, '\t')) return false;
    return true;
}

static char *write_down(const embla_eval_file *f, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (!out) exit(1);
    if (f->kind == EMBLA_EVAL_PAIRS) fputs("first\tsecond\tscore\n", out);
    for (size_t q = 0, s = 0; q < f->count; q++) {
        for (; s < f->section_count && f->sections[s].first <= q; s++)
            fprintf(out, ": %s\n", f->sections[s].name);
        if (f->kind == EMBLA_EVAL_PAIRS)
            fprintf(out, "%s\t%s\t%.17g\n", word_at(f, q, 0), word_at(f, q, 1), f->scores[q]);
        else
            fprintf(out, "%s %s %s %s\n", word_at(f, q, 0), word_at(f, q, 1), word_at(f, q, 2),
                    word_at(f, q, 3));
    }
    if (fclose(out) != 0) exit(1);
    return text;
}

static void check_again(const embla_eval_file *f)
{
    embla_eval_file again = {0};
    size_t size = 0;
    char *text = write_down(f, &size);
    PROMISE(read_file(text, size, f->kind, &again));
    PROMISE(again.count == f->count && again.word_count == f->word_count);
    PROMISE(memcmp(again.items, f->items, f->count * (size_t)f->kind * sizeof *f->items) == 0);
    for (size_t w = 0; w < f->word_count; w++)
        PROMISE(strcmp(again.words[w].bytes, f->words[w].bytes) == 0);
    /* 17 digits are more than is read exactly. */
    for (size_t q = 0; f->kind == EMBLA_EVAL_PAIRS && q < f->count; q++)
        PROMISE(fabs(again.scores[q] - f->scores[q]) <= 1e-13 * fabs(f->scores[q]) + 1e-300);
    embla_eval_file_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const embla_eval_kind kinds[] = {EMBLA_EVAL_PAIRS, EMBLA_EVAL_ANALOGIES};
    size_t accepted = 0;
    for (size_t i = 0; i < 2; i++) {
        embla_eval_file file = {0};
        if (!read_file(data, size, kinds[i], &file)) continue;
        accepted++;
        check_file(&file, kinds[i], size);
        if (plain(&file)) check_again(&file);
        embla_eval_file_free(&file);
    }
    PROMISE(accepted <= 1);
    return 0;
}
