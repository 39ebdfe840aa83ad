/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sharded table.
 *
 *   folder/table-STEP-RRRRR-of-PPPPP.safetensors   rank R of P: a tensor for each of its buckets
 *   folder/model.safetensors.index.json            the usual index of a checkpoint in shards
 *
 * Every rank writes its own file under a new name. When all are complete, rank 0 replaces the
 * index: that is the moment of the save. Files that the index does not name are removed afterwards.
 * A bucket is the same tensor for any number of ranks, so any number of ranks can load it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/saved.h"
#include "cluster/sharded.h"
#include "files/io.h"
#include "files/json_out.h"

#define INDEX EMBLA_SHARDED_INDEX

enum { PATH = 4096, NAME = 96, STATES = 4, TENSOR = 64, PAIRS = 10, NUMBER = 24 };

/* A save or a load under way. */
typedef struct {
    embla_sharded *s;
    embla_optim *optim;
    const char *folder;
    int64_t step;
    embla_optim_state states[STATES];
    size_t state_count;
} files;

static embla_status begin(embla_sharded *s, embla_optim *optim, const char *folder, files *out)
{
    *out = (files){.s = s, .optim = optim, .folder = folder};
    EMBLA_TRY(embla_sharded_idle(s));
    while (optim && out->state_count < STATES &&
           embla_optim_state_at(optim, out->state_count, &out->states[out->state_count]) ==
               EMBLA_OK)
        out->state_count++;
    return EMBLA_OK;
}

/* The name of a bucket's tensor, or of one of its states. */
static void tensor_name(size_t bucket, const char *state, char out[TENSOR])
{
    (void)snprintf(out, TENSOR, "bucket.%05zu%s%s", bucket, state ? "." : "", state ? state : "");
}

static void file_name(int64_t step, int rank, int ranks, char out[NAME])
{
    (void)snprintf(out, NAME, "table-%010" PRId64 "-%05d-of-%05d.safetensors", step, rank, ranks);
}

/* Whether a name is one of file_name. */
static bool parse_name(const char *name, int64_t *step, int *rank, int *ranks)
{
    int end = 0;
    return sscanf(name, "table-%" SCNd64 "-%d-of-%d.safetensors%n", step, rank, ranks, &end) == 3 &&
           end > 0 && name[end] == '\0' && *rank >= 0 && *rank < *ranks;
}

static embla_status path_of(const char *folder, const char *name, char out[PATH])
{
    int n = snprintf(out, PATH, "%s/%s", folder, name);
    if (n >= 0 && n < PATH) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%.200s: the path has %d bytes; at most %d are possible",
                      folder, n, PATH - 1);
}

/* ---- save ---- */

/* Adds the tensors of the bucket at a place: its rows, then the states of its rows. */
static embla_status add_bucket(const files *f, size_t place, embla_saved *saved)
{
    embla_sharded *s = f->s;
    char name[TENSOR], *rows = embla_table_data(s->table);
    size_t first = (place - s->first) * s->bucket_rows, bucket = embla_sharded_bucket(s, place);
    int64_t used = embla_sharded_used(s, bucket);
    if (used == 0) return EMBLA_OK;
    tensor_name(bucket, NULL, name);
    EMBLA_TRY(embla_saved_add(saved, name, s->options.dtype, used, s->options.dim,
                              rows + first * embla_table_row_bytes(s->table)));
    for (size_t n = 0; n < f->state_count; n++) {
        const embla_optim_state *state = &f->states[n];
        tensor_name(bucket, state->name, name);
        EMBLA_TRY(embla_saved_add(saved, name, EMBLA_F32, used, state->dim,
                                  state->values + first * state->dim));
    }
    return EMBLA_OK;
}

/* Metadata as text. */
typedef struct {
    embla_pair pairs[PAIRS];
    char numbers[PAIRS][NUMBER];
    size_t count;
} description;

static void add_number(description *d, const char *key, int64_t value)
{
    (void)snprintf(d->numbers[d->count], NUMBER, "%" PRId64, value);
    d->pairs[d->count] = (embla_pair){key, d->numbers[d->count]};
    d->count++;
}

static void describe(const files *f, description *out)
{
    const embla_sharded_options *o = &f->s->options;
    *out = (description){0};
    add_number(out, "rows", o->rows);
    add_number(out, "dim", (int64_t)o->dim);
    add_number(out, "buckets", (int64_t)o->buckets);
    add_number(out, "step", f->step);
    add_number(out, "states", (int64_t)f->state_count);
    add_number(out, "optimizer_steps", f->optim ? embla_optim_steps(f->optim) : 0);
    out->pairs[out->count++] = (embla_pair){"dtype", embla_dtype_name(o->dtype)};
}

static embla_status save_part(const files *f)
{
    embla_sharded *s = f->s;
    char name[NAME], path[PATH];
    embla_saved saved = {0};
    description d;
    file_name(f->step, s->comm->rank, s->comm->size, name);
    EMBLA_TRY(path_of(f->folder, name, path));
    EMBLA_TRY(embla_io_folder(f->folder));
    embla_status status = embla_saved_begin(&saved, s->buckets * (1 + f->state_count));
    for (size_t b = 0; b < s->buckets && status == EMBLA_OK; b++)
        status = add_bucket(f, s->first + b, &saved);
    describe(f, &d);
    if (status == EMBLA_OK) status = embla_saved_write(&saved, d.pairs, d.count, path);
    embla_arena_free(&saved.arena);
    return status;
}

/* One line of the index for each tensor of a bucket. */
static void say_bucket(const files *f, embla_json_out *json, size_t bucket, bool *first)
{
    char file[NAME], name[TENSOR];
    if (embla_sharded_used(f->s, bucket) == 0) return;
    file_name(f->step, f->s->rank_of[bucket], f->s->comm->size, file);
    for (size_t n = 0; n <= f->state_count; n++) {
        tensor_name(bucket, n > 0 ? f->states[n - 1].name : NULL, name);
        embla_json_say(json, "%s\n    \"%s\": \"%s\"", *first ? "" : ",", name, file);
        *first = false;
    }
}

static uint64_t total_size(const files *f)
{
    const embla_sharded *s = f->s;
    uint64_t numbers = 0;
    for (size_t n = 0; n < f->state_count; n++) numbers += f->states[n].dim;
    return (uint64_t)s->options.rows * (embla_table_row_bytes(s->table) + numbers * sizeof(float));
}

/* Replaces the index. */
static embla_status write_index(const files *f)
{
    char path[PATH];
    bool first = true;
    embla_json_out json = {0};
    EMBLA_TRY(path_of(f->folder, INDEX, path));
    EMBLA_TRY(embla_durable_open(path, &json.out));
    embla_json_say(&json, "{\n  \"metadata\": {\"total_size\": %" PRIu64 "},\n  \"weight_map\": {",
                   total_size(f));
    for (size_t b = 0; b < f->s->options.buckets; b++) say_bucket(f, &json, b, &first);
    embla_json_say(&json, "\n  }\n}\n");
    if (json.status == EMBLA_OK) return embla_durable_commit(json.out);
    embla_durable_abandon(json.out);
    return json.status;
}

/* Removes files of other saves. */
typedef struct {
    embla_folder folder;
    char now[NAME]; /* what names of this save begin with */
} cleaning;

static embla_status remove_other(void *context, const char *name)
{
    const cleaning *c = context;
    int64_t step;
    int rank, ranks;
    if (parse_name(name, &step, &rank, &ranks) && strncmp(name, c->now, strlen(c->now)) != 0)
        embla_io_remove(c->folder, name);
    return EMBLA_OK;
}

/* Failures are not reported: the save is complete, and the next one tries again. */
static void clean(const files *f)
{
    char whole[NAME];
    cleaning c = {.folder = -1};
    file_name(f->step, 0, f->s->comm->size, whole);
    (void)snprintf(c.now, sizeof c.now, "%.17s", whole); /* "table-0000000000-" */
    if (embla_io_open_folder(f->folder, &c.folder) != EMBLA_OK) return;
    if (embla_io_list(c.folder, f->folder, remove_other, &c) != EMBLA_OK) embla_say("%s", "");
    embla_io_drop(c.folder);
}

/* EMBLA_ERR_ARGUMENT if the index names files of this step: they would be replaced one by one, and
 * for a moment the folder would have some of each. */
static embla_status check_new(const files *f)
{
    embla_checkpoint *cp = NULL;
    char path[PATH], name[NAME];
    size_t count;
    bool same = false;
    file_name(f->step, 0, f->s->comm->size, name);
    EMBLA_TRY(path_of(f->folder, INDEX, path));
    if (embla_checkpoint_open(path, NULL, &cp) != EMBLA_OK) return EMBLA_OK;
    const embla_file *list = embla_checkpoint_files(cp, &count);
    for (size_t i = 0; i < count; i++) same = same || strstr(list[i].name, name);
    embla_checkpoint_free(cp);
    if (!same) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s has a save of step %" PRId64 " already; save under another number",
                      f->folder, f->step);
}

embla_status embla_sharded_save(embla_sharded *sharded, embla_optim *optim, const char *folder,
                                int64_t step)
{
    EMBLA_NEED(sharded);
    EMBLA_NEED(folder);
    files f;
    EMBLA_TRY(begin(sharded, optim, folder, &f));
    const embla_comm *comm = sharded->comm;
    if (step < 0 || step > 9999999999)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "step is %" PRId64 "; it must be from 0 to 9999999999", step);
    f.step = step;
    embla_status status = EMBLA_OK;
    if (comm->rank == 0) status = check_new(&f);
    EMBLA_TRY(comm->barrier(comm->owner, EMBLA_COMM_SAVING)); /* it opens all files of a save */
    EMBLA_TRY(embla_comm_agree(comm, status, "the folder cannot be used"));
    status = save_part(&f);
    EMBLA_TRY(comm->barrier(comm->owner, EMBLA_COMM_SAVING)); /* files take different times */
    EMBLA_TRY(embla_comm_agree(comm, status, "its file was not written"));
    if (comm->rank == 0) status = write_index(&f);
    EMBLA_TRY(comm->barrier(comm->owner, EMBLA_COMM_SAVING));
    EMBLA_TRY(embla_comm_agree(comm, status, "the index was not written"));
    if (comm->rank == 0) clean(&f);
    return EMBLA_OK;
}

/* ---- load ---- */

static embla_status expect(const embla_directory *d, const char *path, const char *key,
                           const char *wanted)
{
    const char *found = embla_saved_value(d, key);
    if (found && strcmp(found, wanted) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE, "%.200s has %s %.64s; the sharded table has %s", path, key,
                      found ? found : "nothing", wanted);
}

/* The name of a file in its folder. */
static const char *plain_name(const embla_file *file)
{
    const char *slash = embla_io_slash(file->name);
    return slash ? slash + 1 : file->name;
}

/* Compares the metadata of a file with the table and its name; reads the optimizer's steps. */
static embla_status check_file(const files *f, const embla_checkpoint *cp, const char *path,
                               int64_t *steps)
{
    const embla_directory *directory = &cp->shards[0].directory;
    description d;
    describe(f, &d);
    for (size_t i = 0; i < d.count; i++) {
        const char *key = d.pairs[i].key;
        if (strcmp(key, "step") == 0 || strcmp(key, "optimizer_steps") == 0) continue;
        EMBLA_TRY(expect(directory, path, key, d.pairs[i].value));
    }
    const char *step = embla_saved_value(directory, "step");
    const char *made = embla_saved_value(directory, "optimizer_steps");
    if (!step || !made)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has no %s", path,
                          step ? "optimizer_steps" : "step");
    if (f->step != strtoll(step, NULL, 10))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has the rows of step %.32s, which its name does not say", path,
                          step);
    *steps = strtoll(made, NULL, 10);
    return embla_saved_verify(cp, path);
}

static embla_status load_tensor(const embla_checkpoint *cp, const char *path, const char *name,
                                embla_dtype dtype, int64_t rows, size_t dim, void *to)
{
    const embla_entry *e;
    size_t row_bytes;
    EMBLA_TRY(embla_checkpoint_named(cp, name, &e));
    EMBLA_TRY(embla_dtype_row_bytes(dtype, dim, &row_bytes));
    if (e->element != embla_element_of(dtype) || e->rank != 2 || e->shape[0] != (uint64_t)rows ||
        e->shape[1] != dim)
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.200s: tensor '%s' has %" PRIu64 " bytes of %s; expected: %" PRId64 " x %zu of %s",
            path, name, e->bytes, e->element->name, rows, dim, embla_dtype_name(dtype));
    return embla_entry_read(cp, e, 0, (size_t)rows * row_bytes, to);
}

static embla_status load_bucket(const files *f, const embla_checkpoint *cp, const char *path,
                                size_t place)
{
    embla_sharded *s = f->s;
    char name[TENSOR], *rows = embla_table_data(s->table);
    size_t first = (place - s->first) * s->bucket_rows, bucket = embla_sharded_bucket(s, place);
    int64_t used = embla_sharded_used(s, bucket);
    if (used == 0) return EMBLA_OK;
    tensor_name(bucket, NULL, name);
    EMBLA_TRY(load_tensor(cp, path, name, s->options.dtype, used, s->options.dim,
                          rows + first * embla_table_row_bytes(s->table)));
    for (size_t n = 0; n < f->state_count; n++) {
        const embla_optim_state *state = &f->states[n];
        tensor_name(bucket, state->name, name);
        EMBLA_TRY(load_tensor(cp, path, name, EMBLA_F32, used, state->dim,
                              state->values + first * state->dim));
    }
    return EMBLA_OK;
}

/* Loads from one file the buckets that this rank has. Adds their rows to *rows. */
static embla_status load_file(const files *f, const char *name, int rank, int ranks, int64_t *steps,
                              int64_t *rows)
{
    embla_sharded *s = f->s;
    size_t from = embla_buckets_begin(rank, ranks, s->options.buckets);
    size_t end = embla_buckets_begin((int64_t)rank + 1, ranks, s->options.buckets);
    char path[PATH];
    embla_checkpoint *cp = NULL;
    if (from < s->first) from = s->first;
    if (end > s->first + s->buckets) end = s->first + s->buckets;
    if (from >= end) return EMBLA_OK;
    EMBLA_TRY(path_of(f->folder, name, path));
    EMBLA_TRY(embla_saved_open(path, "a file of a sharded table", &cp));
    embla_status status = check_file(f, cp, path, steps);
    for (size_t b = from; b < end && status == EMBLA_OK; b++) {
        status = load_bucket(f, cp, path, b);
        *rows += embla_sharded_used(s, embla_sharded_bucket(s, b));
    }
    embla_checkpoint_free(cp);
    return status;
}

/* The index must name files of one save. Its step is in their names. */
static embla_status check_names(const char *path, const embla_file *list, size_t count, files *f)
{
    int64_t step = 0;
    int rank, ranks, all = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = plain_name(&list[i]);
        if (!parse_name(name, &step, &rank, &ranks))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s names '%.128s', which is no file of a sharded table", path,
                              name);
        if (i > 0 && (step != f->step || ranks != all))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s names '%.128s' and a file of another save, of step %" PRId64
                              " and %d ranks",
                              path, name, f->step, all);
        f->step = step;
        all = ranks;
    }
    return EMBLA_OK;
}

/* The files that the index names. */
static embla_status load_part(files *f, int64_t *steps)
{
    embla_checkpoint *cp = NULL;
    size_t count;
    int64_t rows = 0, all = 0, step;
    int rank, ranks;
    char path[PATH];
    EMBLA_TRY(path_of(f->folder, INDEX, path));
    EMBLA_TRY(embla_checkpoint_open(path, NULL, &cp));
    const embla_file *list = embla_checkpoint_files(cp, &count);
    embla_status status = check_names(path, list, count, f);
    for (size_t i = 0; i < count && status == EMBLA_OK; i++)
        if (parse_name(plain_name(&list[i]), &step, &rank, &ranks))
            status = load_file(f, plain_name(&list[i]), rank, ranks, steps, &rows);
    embla_checkpoint_free(cp);
    EMBLA_TRY(status);
    for (size_t b = 0; b < f->s->buckets; b++)
        all += embla_sharded_used(f->s, embla_sharded_bucket(f->s, f->s->first + b));
    if (rows == all) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s does not name all files of the save: %" PRId64 " of the rows of rank "
                      "%d are missing",
                      path, all - rows, f->s->comm->rank);
}

embla_status embla_sharded_load(embla_sharded *sharded, embla_optim *optim, const char *folder,
                                int64_t *step)
{
    EMBLA_NEED(sharded);
    EMBLA_NEED(folder);
    files f;
    int64_t steps = 0;
    EMBLA_TRY(begin(sharded, optim, folder, &f));
    embla_status status = load_part(&f, &steps);
    if (status == EMBLA_OK && optim) status = embla_optim_set_steps(optim, steps);
    EMBLA_TRY(sharded->comm->barrier(sharded->comm->owner, EMBLA_COMM_SAVING));
    EMBLA_TRY(embla_comm_agree(sharded->comm, status, "its rows were not loaded"));
    if (step) *step = f.step;
    return embla_sharded_publish(sharded);
}

/* ---- one file ---- */

/* Rows are fetched in order, `capacity` at a time; all ranks take part in each fetch. */
typedef struct {
    embla_sharded *s;
    size_t number;  /* of the table in the stream */
    int64_t next;   /* the first row that is not fetched yet */
    char *rows;     /* those fetched last, as stored */
    uint64_t begin; /* their offset among the bytes of all rows */
    uint64_t end;
    size_t row_bytes;
    int64_t *numbers;
} fetching;

/* Rank 0 says which table the next rows are of, from 1 on, and 0 at the end; the others get it.
 * They wait as long as for any save: rank 0 writes before. */
static embla_status announce(const embla_comm *comm, int64_t *table)
{
    EMBLA_TRY(comm->barrier(comm->owner, EMBLA_COMM_SAVING));
    return comm->allreduce(comm->owner, table, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX);
}

/* Ranks other than 0 ask for nothing. */
static embla_status fetch_some(fetching *g)
{
    embla_sharded *s = g->s;
    int64_t left = s->options.rows - g->next;
    size_t n = left < (int64_t)s->options.capacity ? (size_t)left : s->options.capacity;
    bool mine = s->comm->rank == 0;
    for (size_t i = 0; mine && i < n; i++) g->numbers[i] = g->next + (int64_t)i;
    EMBLA_TRY(embla_sharded_fetch(s, g->numbers, mine ? n : 0, g->rows));
    g->begin = (uint64_t)g->next * g->row_bytes;
    g->next += (int64_t)n;
    g->end = (uint64_t)g->next * g->row_bytes;
    return EMBLA_OK;
}

/* As embla_part reads: front to back. */
static embla_status read_rows(void *context, uint64_t offset, size_t bytes, void *out)
{
    fetching *g = context;
    for (char *to = out; bytes > 0;) {
        int64_t table = (int64_t)g->number + 1;
        if (offset >= g->end) {
            EMBLA_TRY(announce(g->s->comm, &table));
            EMBLA_TRY(fetch_some(g));
        }
        size_t n = g->end - offset < bytes ? (size_t)(g->end - offset) : bytes;
        memcpy(to, g->rows + (offset - g->begin), n);
        to += n;
        offset += n;
        bytes -= n;
    }
    return EMBLA_OK;
}

/* What a rank other than 0 does: it takes part in every fetch until rank 0 ends. A fetch that fails
 * here fails on rank 0 too, which then ends. */
static embla_status follow(const embla_comm *comm, fetching *tables)
{
    embla_status status = EMBLA_OK;
    for (;;) {
        int64_t table = 0;
        EMBLA_TRY(announce(comm, &table));
        if (table == 0) return status;
        embla_status got = fetch_some(&tables[table - 1]);
        if (status == EMBLA_OK) status = got;
    }
}

static embla_status open_stream(embla_sharded *s, size_t number, fetching *out)
{
    size_t bytes = embla_table_row_bytes(s->table), capacity = s->options.capacity;
    EMBLA_TRY(embla_sharded_room(&s->parts, capacity * bytes + 1, "rows to export"));
    EMBLA_TRY(embla_sharded_room(&s->keys, capacity * sizeof(int64_t), "row numbers"));
    *out = (fetching){.s = s,
                      .number = number,
                      .rows = s->parts.memory,
                      .row_bytes = bytes,
                      .numbers = s->keys.memory};
    return EMBLA_OK;
}

embla_status embla_sharded_stream(embla_sharded *const *tables, size_t count,
                                  embla_sharded_use *use, void *context)
{
    const embla_comm *comm = tables[0]->comm;
    fetching streams[EMBLA_SHARDED_STREAMS];
    void *rows[EMBLA_SHARDED_STREAMS];
    int64_t end = 0;
    embla_status status = EMBLA_OK;
    for (size_t i = 0; i < count; i++) EMBLA_TRY(embla_sharded_idle(tables[i]));
    for (size_t i = 0; i < count && status == EMBLA_OK; i++) {
        status = open_stream(tables[i], i, &streams[i]);
        rows[i] = &streams[i];
    }
    EMBLA_TRY(embla_comm_agree(comm, status, "it has no memory to send rows"));
    if (comm->rank != 0) {
        status = follow(comm, streams);
    } else {
        status = use(context, read_rows, rows);
        embla_status ended = announce(comm, &end);
        if (status == EMBLA_OK) status = ended;
    }
    return embla_comm_agree(comm, status, "the file was not written");
}

/* The file that rank 0 writes. */
typedef struct {
    const embla_sharded *s;
    const char *path, *name;
} exported;

static embla_status write_rows(void *context, embla_sharded_read *read, void *const *rows)
{
    const exported *e = context;
    const embla_sharded_options *o = &e->s->options;
    const embla_element *element = NULL;
    EMBLA_TRY(embla_element_find(o->dtype, e->name, &element));
    const embla_part part = {.name = e->name,
                             .element = element,
                             .rank = 2,
                             .shape = {(uint64_t)o->rows, o->dim},
                             .bytes = (uint64_t)o->rows * embla_table_row_bytes(e->s->table),
                             .read = read,
                             .context = rows[0]};
    const embla_contents contents = {.parts = &part, .count = 1};
    const embla_format *format = NULL;
    embla_durable *file = NULL;
    EMBLA_TRY(embla_format_find("safetensors", &format));
    EMBLA_TRY(embla_durable_open(e->path, &file));
    embla_status status = format->write(file, &contents);
    if (status == EMBLA_OK) return embla_durable_commit(file);
    embla_durable_abandon(file);
    return status;
}

embla_status embla_sharded_export(embla_sharded *sharded, const char *path, const char *name)
{
    EMBLA_NEED(sharded);
    EMBLA_NEED(path);
    EMBLA_NEED(name);
    return embla_sharded_stream(&sharded, 1, write_rows, &(exported){sharded, path, name});
}
