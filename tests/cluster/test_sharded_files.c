/* SPDX-License-Identifier: Apache-2.0 */
/* Files of sharded tables: saved by P ranks, loaded by Q, exported to the same bytes. */
#include "check.h"

#include "embla_cluster.h"
#include "scratch.h"
#include "thread_comm.h"

enum { ROWS = 700, DIM = 12, BATCH = 60 };

typedef struct {
    embla_dtype dtype;
    embla_optim_kind kind;
    const char *folder, *exported;
    int64_t step;
    int more; /* steps to make after the load */
} job;

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return embla_fail(EMBLA_ERR_ARGUMENT, "line %d: %s", __LINE__, #condition);            \
    } while (0)

/* One rank's handles. */
typedef struct {
    embla_sharded *s;
    embla_optim *optim;
} handles;

static embla_status open_both(const embla_comm *comm, const job *j, handles *out)
{
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = ROWS, .dim = DIM, .dtype = j->dtype, .buckets = 64, .capacity = BATCH},
        &out->s));
    return embla_optim_new(embla_sharded_table(out->s), &(embla_optim_options){.kind = j->kind},
                           &out->optim);
}

static void close_both(handles *h)
{
    embla_optim_free(h->optim);
    embla_sharded_free(h->s);
}

/* Rank 0 has the whole batch: the number of ranks does not matter. */
static embla_status make_steps(const embla_comm *comm, handles *h, int64_t from, int count)
{
    embla_sharded_sums got = {0};
    for (int64_t step = from; step < from + count; step++) {
        int64_t rows[BATCH];
        float gradients[BATCH * DIM];
        size_t mine = comm->rank == 0 ? BATCH : 0;
        uint64_t random = (uint64_t)step;
        for (size_t i = 0; i < BATCH; i++) rows[i] = (int64_t)(check_next(&random) % ROWS);
        for (size_t i = 0; i < BATCH * DIM; i++)
            gradients[i] = (float)(check_next(&random) % 100) * 0.01f;
        EMBLA_TRY(embla_sharded_sum(h->s, &(embla_sharded_batch){.rows = rows, .count = mine},
                                    gradients, &got));
        EMBLA_TRY(embla_optim_step_rows(h->optim, 0.05, got.rows, got.count, got.sums));
        EMBLA_TRY(embla_sharded_publish(h->s));
    }
    return EMBLA_OK;
}

static embla_status saves(const embla_comm *comm, void *context)
{
    const job *j = context;
    handles h = {0};
    EMBLA_TRY(open_both(comm, j, &h));
    embla_status status = embla_sharded_init(h.s, &(embla_init_options){.seed = 11});
    if (status == EMBLA_OK) status = make_steps(comm, &h, 0, 3);
    if (status == EMBLA_OK) status = embla_sharded_save(h.s, h.optim, j->folder, j->step);
    if (status == EMBLA_OK) status = make_steps(comm, &h, 3, j->more);
    if (status == EMBLA_OK) status = embla_sharded_export(h.s, j->exported, "table");
    close_both(&h);
    return status;
}

static embla_status loads(const embla_comm *comm, void *context)
{
    const job *j = context;
    handles h;
    int64_t step = -1;
    EMBLA_TRY(open_both(comm, j, &h));
    EMBLA_TRY(embla_sharded_load(h.s, h.optim, j->folder, &step));
    must(step == j->step);
    must(embla_optim_steps(h.optim) == 3);
    EMBLA_TRY(make_steps(comm, &h, 3, j->more));
    EMBLA_TRY(embla_sharded_export(h.s, j->exported, "table"));
    close_both(&h);
    return EMBLA_OK;
}

static void assert_same_file(const char *a, const char *b)
{
    size_t size_a, size_b;
    unsigned char *x = scratch_read(a, &size_a), *y = scratch_read(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(x, y, size_a);
    free(x);
    free(y);
}

/* The path of the folder of a save. */
static void folder_of(const scratch *s, char out[256])
{
    int n = snprintf(out, 256, "%s/save", s->folder);
    assert_in_range(n, 1, 255);
}

/* P ranks save, Q load and go on: the same bytes as without the save, for all P and Q. */
static void test_any_number_of_ranks(void **state)
{
    (void)state;
    static const struct {
        embla_dtype dtype;
        embla_optim_kind kind;
    } cases[] = {{EMBLA_F32, EMBLA_OPTIM_ADAMW},
                 {EMBLA_BF16, EMBLA_OPTIM_ADAGRAD_ROWWISE},
                 {EMBLA_F32, EMBLA_OPTIM_SGD}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        scratch s;
        char folder[256], first[SCRATCH_PATH], other[SCRATCH_PATH];
        scratch_new(&s);
        strcpy(first, scratch_path(&s, "first.safetensors"));
        strcpy(other, scratch_path(&s, "other.safetensors"));
        folder_of(&s, folder);
        job j = {cases[i].dtype, cases[i].kind, folder, first, 0, 4};
        for (int p = 1; p <= 4; p++) {
            j.step = p; /* every save replaces the one before */
            j.exported = p == 1 ? first : other;
            thread_comm_run(p, saves, &j);
            if (p > 1) assert_same_file(first, other);
            j.exported = other;
            for (int q = 1; q <= 4; q++) {
                thread_comm_run(q, loads, &j);
                assert_same_file(first, other);
            }
        }
        /* only the files of the last save are left: four, and the index */
        scratch inside;
        strcpy(inside.folder, folder);
        assert_int_equal(scratch_count(&inside, ""), 5);
        scratch_free(&inside);
        scratch_free(&s);
    }
}

/* ---- what is wrong ---- */

typedef struct {
    const char *folder, *sentence;
    embla_status wanted;
    size_t dim, buckets;
    bool optim;
} refused;

static embla_status refuses(const embla_comm *comm, void *context)
{
    const refused *r = context;
    embla_sharded *s;
    embla_optim *optim = NULL;
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = ROWS, .dim = r->dim, .dtype = EMBLA_F32, .buckets = r->buckets, .capacity = 1},
        &s));
    if (r->optim)
        EMBLA_TRY(embla_optim_new(embla_sharded_table(s),
                                  &(embla_optim_options){.kind = EMBLA_OPTIM_ADAMW}, &optim));
    embla_status status = embla_sharded_load(s, optim, r->folder, NULL);
    if (status != r->wanted || (comm->rank == 0 && !strstr(embla_error(), r->sentence)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%d: %s", (int)status, embla_error());
    embla_optim_free(optim);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_refused(void **state)
{
    (void)state;
    scratch s;
    char folder[256], out[SCRATCH_PATH];
    scratch_new(&s);
    strcpy(out, scratch_path(&s, "out.safetensors"));
    folder_of(&s, folder);
    job j = {EMBLA_F32, EMBLA_OPTIM_ADAMW, folder, out, 7, 0};
    refused none = {folder, "", EMBLA_ERR_NOT_FOUND, DIM, 64, true};
    thread_comm_run(2, refuses, &none);
    thread_comm_run(2, saves, &j);
    refused dim = {folder, "has dim 12; the sharded table has 13", EMBLA_ERR_SHAPE, 13, 64, true};
    refused buckets = {folder, "has buckets 64; the sharded table has 32", EMBLA_ERR_SHAPE, DIM, 32,
                       true};
    refused states = {folder, "has states 2; the sharded table has 0", EMBLA_ERR_SHAPE, DIM, 64,
                      false};
    thread_comm_run(2, refuses, &dim);
    thread_comm_run(2, refuses, &buckets);
    thread_comm_run(2, refuses, &states);
    /* the same step again would replace files one by one */
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_try(2, saves, &j, results);
    assert_int_equal(results[0].status, EMBLA_ERR_ARGUMENT);
    assert_non_null(strstr(results[0].sentence, "has a save of step 7 already"));
    assert_int_equal(results[1].status, EMBLA_ERR_ARGUMENT);
    /* one byte of a row is damaged */
    char file[SCRATCH_PATH];
    strcpy(file, scratch_path(&s, "save/table-0000000007-00001-of-00002.safetensors"));
    int fd = open(file, O_RDWR);
    struct stat about;
    unsigned char byte;
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    assert_int_equal(pread(fd, &byte, 1, about.st_size - 100), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, about.st_size - 100), 1);
    close(fd);
    refused damaged = {folder, "", EMBLA_ERR_FORMAT, DIM, 64, true};
    thread_comm_run(1, refuses, &damaged);
    damaged.sentence = "rank 1 failed";
    thread_comm_run(2, refuses, &damaged);
    scratch inside;
    strcpy(inside.folder, folder);
    scratch_free(&inside);
    scratch_free(&s);
}

/* Leaves out the lines of the index that have a text (to NULL), or replaces it there by another one
 * of the same length. */
static void edit_index(const char *path, const char *from, const char *to)
{
    size_t count = 0, used = 0;
    char *text = (char *)scratch_read(path, &count), *out = calloc(count + 1, 1);
    assert_non_null(text);
    assert_non_null(out);
    for (size_t at = 0; at < count;) {
        char line[512] = "", *found;
        const char *end = memchr(text + at, '\n', count - at);
        size_t n = end ? (size_t)(end - (text + at)) + 1 : count - at;
        assert_true(n < sizeof line);
        memcpy(line, text + at, n);
        at += n;
        found = strstr(line, from);
        if (found && !to) continue;
        if (found) memcpy(found, to, strlen(to));
        memcpy(out + used, line, n);
        used += n;
    }
    scratch_write(path, out, used);
    free(text);
    free(out);
}

/* An index that names only some files, or files of several saves. */
static void test_damaged_index(void **state)
{
    (void)state;
    scratch s;
    char folder[256], out[SCRATCH_PATH], index[SCRATCH_PATH], file[SCRATCH_PATH];
    size_t bytes = 0;
    scratch_new(&s);
    strcpy(out, scratch_path(&s, "out.safetensors"));
    strcpy(index, scratch_path(&s, "save/model.safetensors.index.json"));
    strcpy(file, scratch_path(&s, "save/table-0000000007-00001-of-00003.safetensors"));
    folder_of(&s, folder);
    job j = {EMBLA_F32, EMBLA_OPTIM_ADAMW, folder, out, 7, 0};
    refused missing = {folder, "of the rows", EMBLA_ERR_FORMAT, DIM, 64, true};
    refused mixed = {folder, "of another save", EMBLA_ERR_FORMAT, DIM, 64, true};
    thread_comm_run(3, saves, &j);
    unsigned char *kept = scratch_read(file, &bytes);
    edit_index(index, "-00000-of-00003", NULL);
    for (int ranks = 1; ranks <= 3; ranks++) thread_comm_run(ranks, refuses, &missing);
    j.step = 8;
    thread_comm_run(3, saves, &j);
    scratch_write(file, kept, bytes);
    edit_index(index, "table-0000000008-00001", "table-0000000007-00001");
    for (int ranks = 1; ranks <= 3; ranks++) thread_comm_run(ranks, refuses, &mixed);
    free(kept);
    scratch inside;
    strcpy(inside.folder, folder);
    scratch_free(&inside);
    scratch_free(&s);
}

/* Rank 0 cannot write: all ranks fail, none waits. */
static void test_export_fails(void **state)
{
    (void)state;
    scratch s;
    char folder[256];
    scratch_new(&s);
    folder_of(&s, folder);
    job j = {EMBLA_F32, EMBLA_OPTIM_SGD, folder, "/nonexistent/folder/x.safetensors", 1, 0};
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_try(3, saves, &j, results);
    for (int r = 0; r < 3; r++) assert_int_not_equal(results[r].status, EMBLA_OK);
    assert_non_null(strstr(results[2].sentence, "rank 0 failed"));
    scratch inside;
    strcpy(inside.folder, folder);
    scratch_free(&inside);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_ranks), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damaged_index), cmocka_unit_test(test_export_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
