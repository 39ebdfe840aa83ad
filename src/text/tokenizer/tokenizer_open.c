/* SPDX-License-Identifier: Apache-2.0 */
/* Opens tokenizers: finds the parts of a tokenizer.json, and builds the tables that all kinds have.
 *
 * The model of a large file has megabytes of strings. It is read in one pass (tokenizer_model.c);
 * the other parts are small and are read as trees.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "files/io.h"
#include "files/json_walk.h"
#include "files/map.h"
#include "tokenizer/compiled.h"
#include "tokenizer/grow.h"
#include "tokenizer/stages.h"

enum { FILE_MOST = 256000000, JSON_DEPTH = 32 };

/* ---- tables of all kinds ---- */

embla_status embla_tokenizer_begin(const char *name, const char *source, embla_tokenizer **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_tokenizer), "a tokenizer", &memory));
    embla_tokenizer *t = memory;
    t->unknown = -1;
    t->source = source;
    embla_status status = embla_arena_text(&t->arena, name, strlen(name), &t->name);
    if (status == EMBLA_OK)
        *out = t;
    else
        embla_tokenizer_free(t);
    return status;
}

embla_status embla_tokenizer_add(embla_tokenizer *t, const char *bytes, size_t length,
                                 uint64_t token)
{
    void *list = t->vocab;
    const char *copy = NULL;
    EMBLA_TRY(embla_arena_grow(&t->arena, sizeof *t->vocab, t->vocab_count, "a vocabulary", &list,
                               &t->vocab_room));
    t->vocab = list;
    EMBLA_TRY(embla_arena_text(&t->arena, bytes, length, &copy));
    t->vocab[t->vocab_count++] = (embla_name){copy, (uint32_t)length, (uint32_t)token};
    return EMBLA_OK;
}

/* Lists the strings by token. */
static embla_status list_tokens(embla_tokenizer *t)
{
    uint32_t *list = NULL;
    for (size_t i = 0; i < t->vocab_count; i++)
        if (t->vocab[i].number >= t->token_end) t->token_end = (size_t)t->vocab[i].number + 1;
    if (t->token_end > t->vocab_count * 8 + 65536)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: its highest token is %zu, but it has only %zu strings", t->name,
                          t->token_end - 1, t->vocab_count);
    EMBLA_TRY(embla_arena_many(&t->arena, t->token_end, sizeof *list, "tokens", &list));
    for (size_t i = 0; i < t->token_end; i++) list[i] = EMBLA_NO_STRING;
    for (size_t i = 0; i < t->vocab_count; i++) list[t->vocab[i].number] = (uint32_t)i;
    t->by_token = list;
    return EMBLA_OK;
}

/* The strings that the model compares with the text: as in the file, or the bytes they stand for.
 */
static embla_status make_keys(const embla_tokenizer *t, embla_arena *scratch, embla_trie_key *keys,
                              size_t *count)
{
    for (size_t i = 0; i < t->vocab_count; i++) {
        const embla_name *s = &t->vocab[i];
        embla_trie_key *key = &keys[*count];
        if (t->hidden && t->hidden[i]) continue;
        char *bytes = NULL;
        size_t length = 0;
        *key = (embla_trie_key){s->bytes, s->length, (int32_t)s->number};
        if (t->byte_level) {
            EMBLA_TRY(embla_arena_many(scratch, (uint64_t)s->length + 1, 1, "a string", &bytes));
            if (!embla_unmap(s->bytes, s->length, bytes, &length)) continue; /* never in a text */
            *key = (embla_trie_key){bytes, (uint32_t)length, (int32_t)s->number};
        }
        ++*count;
    }
    return EMBLA_OK;
}

static embla_status build_trie(embla_tokenizer *t)
{
    embla_arena scratch = {0};
    embla_trie_key *keys = NULL;
    size_t count = 0;
    embla_status status =
        embla_arena_many(&scratch, t->vocab_count, sizeof *keys, "a vocabulary", &keys);
    if (status == EMBLA_OK) status = make_keys(t, &scratch, keys, &count);
    if (status == EMBLA_OK) status = embla_trie_build(&t->trie, keys, count);
    embla_arena_free(&scratch);
    return status;
}

static bool find_inner(const embla_tokenizer *t, uint32_t *state)
{
    const embla_name *prefix = &t->wordpiece.prefix;
    *state = 0;
    for (size_t i = 0; i < prefix->length; i++)
        if (!embla_trie_step(&t->trie, state, (uint8_t)prefix->bytes[i])) return false;
    return true;
}

embla_status embla_tokenizer_finish(embla_tokenizer *t, const embla_name *merges,
                                    size_t merge_count)
{
    embla_pipeline_say(t, embla_tokenizer_kind_name(t->kind));
    EMBLA_TRY(list_tokens(t));
    EMBLA_TRY(build_trie(t));
    if (t->byte_level || t->hidden) EMBLA_TRY(embla_tokenizer_sort(t));
    if (t->unknown_text.bytes && t->kind != EMBLA_TOKENIZER_UNIGRAM)
        t->unknown = embla_tokenizer_literal(t, t->unknown_text.bytes, t->unknown_text.length);
    t->wordpiece.has_inner = find_inner(t, &t->wordpiece.inner);
    if (t->kind == EMBLA_TOKENIZER_BPE) EMBLA_TRY(embla_bpe_build(t, merges, merge_count));
    if (t->kind == EMBLA_TOKENIZER_UNIGRAM) {
        if (t->vocab_count == 0 || (t->unknown >= 0 && (size_t)t->unknown >= t->vocab_count))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: unk_id is %" PRId32 ", but the vocabulary has %zu strings",
                              t->name, t->unknown, t->vocab_count);
        EMBLA_TRY(embla_unigram_build(t));
    }
    return embla_added_finish(t);
}

static void free_pattern(embla_pattern *pattern)
{
    if (pattern->kind == EMBLA_PATTERN_ONIG) embla_onig_free(pattern->onig);
}

void embla_tokenizer_free(embla_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    for (size_t i = 0; i < tokenizer->normal_count; i++)
        free_pattern(&tokenizer->normals[i].pattern);
    for (size_t i = 0; i < tokenizer->pre_count; i++) free_pattern(&tokenizer->pres[i].pattern);
    for (size_t i = 0; i < tokenizer->decoder_count; i++)
        free_pattern(&tokenizer->decoders[i].pattern);
    if (!tokenizer->map) {
        embla_bpe_free(&tokenizer->bpe);
        embla_trie_free(&tokenizer->trie);
        embla_trie_free(&tokenizer->raw.trie);
        embla_trie_free(&tokenizer->normalized.trie);
    }
    embla_map_free(tokenizer->map);
    embla_arena_free(&tokenizer->arena);
    embla_mem_free(tokenizer, sizeof *tokenizer);
}

/* ---- tokenizer.json ---- */

/* The parts of the file, in the order in which they are read. */
enum {
    ADDED,
    NORMALIZER,
    PRE_TOKENIZER,
    POST_PROCESSOR,
    DECODER,
    TRUNCATION,
    PADDING,
    MODEL,
    PARTS
};
static const char *const part_names[PARTS] = {"added_tokens",   "normalizer", "pre_tokenizer",
                                              "post_processor", "decoder",    "truncation",
                                              "padding",        "model"};

typedef struct {
    const uint8_t *bytes;
    size_t count;
} part;

/* Finds where each part begins and ends. This also checks the JSON of the whole file. */
static embla_status find_parts(embla_walk *w, part parts[PARTS])
{
    EMBLA_TRY(embla_walk_next(w));
    while (w->step == EMBLA_WALK_OBJECT || w->depth > 0) {
        embla_name key;
        EMBLA_TRY(embla_walk_next(w));
        if (w->step != EMBLA_WALK_KEY) continue;
        EMBLA_TRY(embla_walk_text(w, &key));
        size_t known = 0;
        while (known < PARTS && !embla_name_is(&key, part_names[known])) known++;
        EMBLA_TRY(embla_walk_next(w));
        bool open = w->step == EMBLA_WALK_OBJECT || w->step == EMBLA_WALK_ARRAY;
        size_t begin = w->at - 1;
        EMBLA_TRY(embla_walk_skip(w));
        if (known < PARTS && open) parts[known] = (part){w->bytes + begin, w->at - begin};
    }
    return embla_walk_next(w); /* nothing follows */
}

typedef embla_status part_reader(embla_tokenizer *t, const embla_json_value *value);

static embla_status read_part(embla_tokenizer *t, const part *p, part_reader *read)
{
    embla_json_value *value = NULL;
    if (p->bytes) EMBLA_TRY(embla_json_read(p->bytes, p->count, t->name, JSON_DEPTH, "T1", &value));
    embla_status status = read(t, value);
    embla_json_free(value);
    return status;
}

static embla_status read_truncation(embla_tokenizer *t, const embla_json_value *value)
{
    return embla_limits_parse(t, value, NULL);
}

static embla_status read_padding(embla_tokenizer *t, const embla_json_value *value)
{
    embla_limit kept = t->truncation;
    embla_status status = embla_limits_parse(t, NULL, value);
    t->truncation = kept;
    return status;
}

static embla_status read_parts(embla_tokenizer *t, const part parts[PARTS])
{
    const bool compiled = t->map != NULL;
    if (!compiled && !parts[MODEL].bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: it has no \"model\", so it is not a tokenizer.json", t->name);
    if (!compiled) EMBLA_TRY(read_part(t, &parts[ADDED], embla_added_parse));
    EMBLA_TRY(read_part(t, &parts[NORMALIZER], embla_normals_parse));
    EMBLA_TRY(read_part(t, &parts[PRE_TOKENIZER], embla_pres_parse));
    if (compiled)
        embla_pipeline_say(t, embla_tokenizer_kind_name(t->kind));
    else
        EMBLA_TRY(embla_model_parse(t, parts[MODEL].bytes, parts[MODEL].count));
    EMBLA_TRY(read_part(t, &parts[POST_PROCESSOR], embla_post_parse));
    EMBLA_TRY(read_part(t, &parts[DECODER], embla_decoders_parse));
    EMBLA_TRY(read_part(t, &parts[TRUNCATION], read_truncation));
    return read_part(t, &parts[PADDING], read_padding);
}

static embla_status list_parts(const embla_tokenizer *t, const void *json, size_t count,
                               part parts[PARTS])
{
    embla_arena scratch = {0};
    embla_walk walk;
    embla_status status = embla_walk_begin(&walk, json, count, t->name, "T1", &scratch);
    if (status == EMBLA_OK) status = find_parts(&walk, parts);
    embla_arena_free(&scratch);
    return status;
}

embla_status embla_tokenizer_parts(embla_tokenizer *t, const void *json, size_t count)
{
    part parts[PARTS] = {{0}};
    EMBLA_TRY(list_parts(t, json, count, parts));
    return read_parts(t, parts);
}

/* The JSON may be that of stages alone. */
embla_status embla_tokenizer_stages(embla_tokenizer *t, const char *json)
{
    embla_json_value *value = NULL;
    EMBLA_TRY(embla_json_read(json, strlen(json), t->name, JSON_DEPTH, "T1", &value));
    embla_status status = embla_normals_parse(t, embla_json_get(value, "normalizer"));
    if (status == EMBLA_OK) status = embla_pres_parse(t, embla_json_get(value, "pre_tokenizer"));
    if (status == EMBLA_OK) status = embla_decoders_parse(t, embla_json_get(value, "decoder"));
    embla_json_free(value);
    return status;
}

/* ---- other files ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Detects what a file is from its first bytes, and reads it. */
static embla_status parse_any(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    size_t at = 0;
    while (at < count && is_space(bytes[at])) at++;
    if (at < count && bytes[at] == '{') return embla_tokenizer_parts(t, bytes, count);
    if (embla_sentencepiece_sniff(bytes, count < 4096 ? count : 4096)) {
        t->source = "SentencePiece";
        return embla_sentencepiece_parse(t, bytes, count);
    }
    if (embla_tiktoken_sniff(bytes, count)) {
        t->source = "tiktoken";
        return embla_tiktoken_parse(t, bytes, count);
    }
    t->source = "vocab.txt";
    return embla_vocab_txt_parse(t, bytes, count);
}

static bool is_gguf(const uint8_t *bytes, size_t count)
{
    return count >= 4 && memcmp(bytes, "GGUF", 4) == 0;
}

/* A compiled file or a GGUF. */
static embla_status parse_map(embla_tokenizer *t, embla_map *map)
{
    uint8_t head[8] = {0};
    EMBLA_TRY(embla_map_read(map, 0, map->size < 8 ? (size_t)map->size : 8, head));
    if (embla_compiled_sniff(head, sizeof head)) return embla_compiled_open(t, map);
    t->source = "GGUF";
    return embla_tokenizer_of_gguf(t, map);
}

/* The tables of a compiled file are used in place, so a copy of the caller's bytes is kept. */
static embla_status parse_bytes(embla_tokenizer *t, const uint8_t *bytes, size_t count)
{
    embla_map *map = NULL;
    void *copy = NULL;
    const bool compiled = embla_compiled_sniff(bytes, count);
    if (!compiled && !is_gguf(bytes, count)) return parse_any(t, bytes, count);
    if (compiled) {
        EMBLA_TRY(embla_arena_take(&t->arena, count, "a compiled tokenizer", &copy));
        bytes = memcpy(copy, bytes, count);
    }
    EMBLA_TRY(embla_map_bytes(bytes, count, t->name, &map));
    embla_status status = parse_map(t, map);
    embla_map_free(map);
    return status;
}

embla_status embla_tokenizer_open_bytes(const void *bytes, size_t count, const char *name,
                                        embla_tokenizer **out)
{
    embla_tokenizer *t = NULL;
    EMBLA_NEED(bytes);
    EMBLA_NEED(out);
    if (count > FILE_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: it has %zu bytes; the limit is %d",
                          name ? name : "tokenizer", count, FILE_MOST);
    EMBLA_TRY(embla_tokenizer_begin(name ? name : "tokenizer", "tokenizer.json", &t));
    embla_status status = parse_bytes(t, bytes, count);
    if (status == EMBLA_OK)
        *out = t;
    else
        embla_tokenizer_free(t);
    return status;
}

/* ---- files ---- */

/* A compiled file is used in place. A GGUF file may have gigabytes of tensors: only its keys are
 * read. */
static embla_status parse_part(embla_map *map, embla_tokenizer **out)
{
    embla_tokenizer *t = NULL;
    EMBLA_TRY(embla_tokenizer_begin(map->name, "GGUF", &t));
    embla_status status = parse_map(t, map);
    if (status == EMBLA_OK)
        *out = t;
    else
        embla_tokenizer_free(t);
    return status;
}

/* Reads a file into memory: its size and one byte. */
static embla_status read_whole(const embla_map *map, void **out)
{
    void *bytes = NULL;
    if (map->size > FILE_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: it has %" PRIu64 " bytes; the limit is %d",
                          map->name, map->size, FILE_MOST);
    const size_t count = (size_t)map->size;
    EMBLA_TRY(embla_mem_new(count + 1, "a tokenizer's file", &bytes));
    embla_status status = embla_map_read(map, 0, count, bytes);
    if (status == EMBLA_OK)
        *out = bytes;
    else
        embla_mem_free(bytes, count + 1);
    return status;
}

static embla_status parse_whole(const embla_map *map, embla_tokenizer **out)
{
    void *bytes = NULL;
    EMBLA_TRY(read_whole(map, &bytes));
    embla_status status = embla_tokenizer_open_bytes(bytes, (size_t)map->size, map->name, out);
    embla_mem_free(bytes, (size_t)map->size + 1);
    return status;
}

static embla_status parse_file(embla_folder folder, const char *name, const char *shown,
                               embla_tokenizer **out)
{
    embla_map *map = NULL;
    uint8_t head[8] = {0};
    EMBLA_TRY(embla_map_open(folder, name, shown, true, &map));
    embla_status status = embla_map_read(map, 0, map->size < 8 ? (size_t)map->size : 8, head);
    if (status == EMBLA_OK)
        status = is_gguf(head, sizeof head) || embla_compiled_sniff(head, sizeof head)
                     ? parse_part(map, out)
                     : parse_whole(map, out);
    embla_map_free(map);
    return status;
}

/* The files that a folder may have, in the order in which they are tried. */
static embla_status parse_folder(embla_folder folder, const char *path, embla_tokenizer **out)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "spiece.model",
                                        "vocab.txt"};
    char shown[512];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(shown, sizeof shown, "%.400s/%s", path, names[i]);
        embla_status status = parse_file(folder, names[i], shown, out);
        if (status != EMBLA_ERR_NOT_FOUND) return status;
    }
    return embla_fail(
        EMBLA_ERR_NOT_FOUND,
        "%.256s: it has no tokenizer.json, tokenizer.model, spiece.model or vocab.txt", path);
}

embla_status embla_tokenizer_open_file(const char *path, embla_tokenizer **out)
{
    embla_file_facts info;
    embla_handle file = -1;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_open_named(path, &file));
    embla_status status = embla_io_facts(file, path, &info);
    if (status == EMBLA_OK)
        status = info.kind == EMBLA_IS_FOLDER ? parse_folder(file, path, out)
                                              : parse_file(EMBLA_HERE, path, path, out);
    embla_io_drop(file);
    return status;
}

/* ---- compiling ---- */

/* Joins the parts of a tokenizer.json that a compiled file keeps as JSON. */
static embla_status join_stages(const embla_tokenizer *t, const part parts[PARTS],
                                embla_arena *arena, const char **out, size_t *length)
{
    char *text = NULL;
    size_t need = 3, at = 0;
    for (int i = 0; i < PARTS; i++) need += parts[i].count + 32;
    EMBLA_TRY(embla_arena_many(arena, need, 1, t->name, &text));
    text[at++] = '{';
    for (int i = 0; i < PARTS; i++) {
        if (i == ADDED || i == MODEL || !parts[i].bytes) continue;
        at += (size_t)snprintf(text + at, 32, "%s\"%s\":", at > 1 ? "," : "", part_names[i]);
        memcpy(text + at, parts[i].bytes, parts[i].count);
        at += parts[i].count;
    }
    text[at++] = '}';
    *out = text;
    *length = at;
    return EMBLA_OK;
}

static embla_status compile(const void *bytes, size_t count, const char *name, const char *out)
{
    embla_arena arena = {0};
    embla_tokenizer *t = NULL;
    part parts[PARTS] = {{0}};
    const char *stages = NULL;
    size_t length = 0;
    EMBLA_TRY(embla_tokenizer_open_bytes(bytes, count, name, &t));
    embla_status status = EMBLA_OK;
    if (strcmp(t->source, "tokenizer.json") != 0)
        status = embla_fail(EMBLA_ERR_UNSUPPORTED,
                            "%.256s is of the format %s; only a tokenizer.json can be compiled",
                            name, t->source);
    if (status == EMBLA_OK) status = list_parts(t, bytes, count, parts);
    if (status == EMBLA_OK) status = join_stages(t, parts, &arena, &stages, &length);
    if (status == EMBLA_OK) status = embla_compiled_write(t, bytes, count, stages, length, out);
    embla_arena_free(&arena);
    embla_tokenizer_free(t);
    return status;
}

/* Maps a tokenizer.json, or the one of a folder. */
static embla_status map_json(const char *path, embla_map **out)
{
    embla_file_facts info;
    char shown[512];
    embla_handle file = -1;
    EMBLA_TRY(embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &file));
    (void)snprintf(shown, sizeof shown, "%.400s/tokenizer.json", path);
    embla_status status = embla_io_facts(file, path, &info);
    if (status == EMBLA_OK)
        status = info.kind == EMBLA_IS_FOLDER
                     ? embla_map_open(file, "tokenizer.json", shown, true, out)
                     : embla_map_open(EMBLA_HERE, path, path, true, out);
    embla_io_drop(file);
    return status;
}

/* Whether a path is this very file. */
static bool is_same(const embla_map *map, const char *path)
{
    embla_file_facts info;
    embla_handle file = -1;
    if (embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &file) != EMBLA_OK) return false;
    bool same = embla_io_facts(file, path, &info) == EMBLA_OK && embla_same_file(info.id, map->id);
    embla_io_drop(file);
    return same;
}

embla_status embla_tokenizer_compile(const char *path, const char *to)
{
    embla_map *map = NULL;
    void *bytes = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(to);
    EMBLA_TRY(map_json(path, &map));
    const size_t count = (size_t)map->size;
    embla_status status = EMBLA_OK;
    if (is_same(map, to))
        status = embla_fail(EMBLA_ERR_ARGUMENT,
                            "%.256s is the input file and cannot be overwritten; choose another "
                            "name",
                            to);
    if (status == EMBLA_OK) status = read_whole(map, &bytes);
    if (status == EMBLA_OK) status = compile(bytes, count, map->name, to);
    if (bytes) embla_mem_free(bytes, count + 1);
    embla_map_free(map);
    return status;
}
