/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by oneDNN 2 or 3: f32 by dnnl_sgemm, bf16 by its matmul primitive.
 *
 * oneDNN asks OpenMP how many threads to use, and OpenMP answers for the calling thread. A product
 * sets that number to 1 and sets it back afterwards: our callers share their work by themselves.
 */
#include <dnnl.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/load.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/thread_system.h"
#include "engine/library.h"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "this oneDNN does not use OpenMP; use one that does, or build with -DEMBLA_ENGINE=cblas"
#endif
#ifndef EMBLA_ONEDNN_VERSION /* what find.cmake reads in the library */
#if DNNL_VERSION_MAJOR >= 3
#define EMBLA_ONEDNN_VERSION "3"
#else
#define EMBLA_ONEDNN_VERSION "2"
#endif
#endif

/* clang-format off */
#define DNNL_COMMON(X)                                                                             \
    X(dnnl_version) X(dnnl_sgemm) X(dnnl_get_effective_cpu_isa) X(dnnl_engine_create)              \
    X(dnnl_stream_create) X(dnnl_stream_wait) X(dnnl_stream_destroy)                               \
    X(dnnl_memory_create) X(dnnl_memory_destroy) X(dnnl_memory_set_data_handle)                    \
    X(dnnl_primitive_create)                                                                       \
    X(dnnl_primitive_execute) X(dnnl_primitive_destroy) X(dnnl_primitive_desc_destroy)             \
    X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_destroy)                                   \
    X(dnnl_primitive_attr_set_post_ops) X(dnnl_post_ops_create) X(dnnl_post_ops_destroy)           \
    X(dnnl_post_ops_append_sum) X(dnnl_primitive_desc_query_md)                                    \
    X(dnnl_reorder_primitive_desc_create)
#if DNNL_VERSION_MAJOR >= 3
#define DNNL_FUNCTIONS(X)                                                                          \
    DNNL_COMMON(X) X(dnnl_memory_desc_create_with_strides) X(dnnl_memory_desc_destroy)             \
    X(dnnl_memory_desc_create_with_tag)                                                            \
    X(dnnl_matmul_primitive_desc_create)
#else
#define DNNL_FUNCTIONS(X)                                                                          \
    DNNL_COMMON(X) X(dnnl_memory_desc_init_by_strides) X(dnnl_matmul_desc_init)                    \
    X(dnnl_memory_desc_init_by_tag)                                                                \
    X(dnnl_primitive_desc_create)
#endif
/* clang-format on */

typedef struct {
    DNNL_FUNCTIONS(EMBLA_LIBRARY_POINTER)
    /* functions of the OpenMP that oneDNN uses, which may differ from ours; NULL if it uses none */
    int (*omp_get_max_threads)(void), (*omp_in_parallel)(void);
    void (*omp_set_num_threads)(int);
    dnnl_engine_t engine;
} functions;
static functions dnn;

/* ---- loading ---- */

static const char *find_dnnl(void *library, functions *table)
{
    const char *missing = NULL;
    DNNL_FUNCTIONS(EMBLA_LIBRARY_FIND)
    return missing;
}

/* The loader binds a library's symbols to the program's own libraries first, then to those that
 * the library depends on. The same order finds the OpenMP that oneDNN uses: libgomp, or the
 * libomp of a program built with clang. */
static const char *find_openmp(void *library, functions *table)
{
    const char *missing = NULL;
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
    char why[EMBLA_LIBRARY_SENTENCE];
    void *program = embla_load(NULL, EMBLA_LOAD_OWN, why, sizeof why);
    if (program && embla_load_symbol(program, "omp_get_max_threads")) library = program;
    EMBLA_LIBRARY_FIND(omp_get_max_threads)
    EMBLA_LIBRARY_FIND(omp_in_parallel)
    EMBLA_LIBRARY_FIND(omp_set_num_threads)
#else
    (void)library, (void)table;
#endif
    return missing;
}

static void load(embla_library *out)
{
    static const char *const names[] = {"libdnnl.so." EMBLA_ONEDNN_VERSION, NULL};
    static const char package[] = "oneDNN (Debian: libdnnl" EMBLA_ONEDNN_VERSION ")";
    void *library = embla_library_load(names, package, out->error);
    if (!library) return;
    const char *missing = find_dnnl(library, &dnn);
    if (!missing) missing = find_openmp(library, &dnn);
    if (missing) {
        (void)snprintf(out->error, sizeof out->error, "%s has no %s", names[0], missing);
        return;
    }
    if (dnn.dnnl_engine_create(&dnn.engine, dnnl_cpu, 0) != dnnl_success) {
        (void)snprintf(out->error, sizeof out->error, "%s cannot create a CPU engine", names[0]);
        return;
    }
    out->bf16 = (dnn.dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
                dnnl_cpu_isa_avx512_core_bf16;
    const dnnl_version_t *version = dnn.dnnl_version();
    (void)snprintf(out->name, sizeof out->name, "oneDNN %d.%d.%d", version->major, version->minor,
                   version->patch);
}

/* ---- around a call: threads and signals ---- */

/* oneDNN's AVX-512 code uses the stack pointer as a general register for a while (seen in
 * 2.6.3). A signal handler's frame would then be written to an arbitrary address on the heap.
 * So signals are blocked while oneDNN runs, except those that its own code could raise. */

/* Returns the number of threads to set back, or 0 if nothing was changed. */
static int one_thread_begin(void)
{
    /* Inside a parallel region oneDNN stays on one thread by itself. */
    if (!dnn.omp_in_parallel || dnn.omp_in_parallel()) return 0;
    int before = dnn.omp_get_max_threads();
    if (before == 1) return 0;
    dnn.omp_set_num_threads(1);
    return before;
}

static void one_thread_end(int before)
{
    if (before > 0) dnn.omp_set_num_threads(before);
}

static embla_status status_of(dnnl_status_t status, size_t m, size_t n, size_t k)
{
    if (status == dnnl_success) return EMBLA_OK;
    return embla_fail(status == dnnl_out_of_memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_UNSUPPORTED,
                      "oneDNN refused a product of %zu x %zu by %zu x %zu (oneDNN status %d)", m, k,
                      k, n, (int)status);
}

/* ---- f32 ---- */

static embla_status multiply(const embla_product *p)
{
    embla_signals signals;
    embla_signals_block(&signals);
    int threads = one_thread_begin();
    dnnl_status_t status = dnn.dnnl_sgemm(
        p->form == EMBLA_PRODUCT_AT_B ? 'T' : 'N', p->form == EMBLA_PRODUCT_A_BT ? 'T' : 'N',
        (dnnl_dim_t)p->m, (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, 1.0f, p->a, (dnnl_dim_t)p->a_stride,
        p->b, (dnnl_dim_t)p->b_stride, p->add ? 1.0f : 0.0f, p->out, (dnnl_dim_t)p->out_stride);
    one_thread_end(threads);
    embla_signals_restore(&signals);
    return status_of(status, p->m, p->n, p->k);
}

/* ---- bf16 ---- */

/* A matrix in memory. Its descriptor is a struct in oneDNN 2 and a handle in oneDNN 3. */
typedef struct {
    dnnl_memory_desc_t desc;
    dnnl_memory_t memory;
} operand;

#if DNNL_VERSION_MAJOR >= 3
#define DESC(it) ((it)->desc)
#else
#define DESC(it) (&(it)->desc)
#endif

static dnnl_status_t operand_new(dnnl_data_type_t type, const dnnl_dims_t shape,
                                 const dnnl_dims_t strides, const void *numbers, operand *out)
{
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status =
        dnn.dnnl_memory_desc_create_with_strides(&out->desc, 2, shape, type, strides);
#else
    dnnl_status_t status =
        dnn.dnnl_memory_desc_init_by_strides(&out->desc, 2, shape, type, strides);
#endif
    if (status != dnnl_success) return status;
    return dnn.dnnl_memory_create(&out->memory, DESC(out), dnn.engine, (void *)(uintptr_t)numbers);
}

static void operand_free(operand *it)
{
    if (it->memory) (void)dnn.dnnl_memory_destroy(it->memory);
#if DNNL_VERSION_MAJOR >= 3
    if (it->desc) (void)dnn.dnnl_memory_desc_destroy(it->desc);
#endif
}

/* Attributes that add the product to out; none are needed without add. */
static dnnl_status_t attributes_new(bool add, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t after = NULL;
    if (!add) return dnnl_success;
    dnnl_status_t status = dnn.dnnl_primitive_attr_create(out);
    if (status == dnnl_success) status = dnn.dnnl_post_ops_create(&after);
#if DNNL_VERSION_MAJOR >= 3
    if (status == dnnl_success)
        status = dnn.dnnl_post_ops_append_sum(after, 1.0f, 0, dnnl_data_type_undef);
#else
    if (status == dnnl_success) status = dnn.dnnl_post_ops_append_sum(after, 1.0f);
#endif
    if (status == dnnl_success) status = dnn.dnnl_primitive_attr_set_post_ops(*out, after);
    if (after) (void)dnn.dnnl_post_ops_destroy(after);
    return status;
}

static dnnl_status_t matmul_new(const operand *a, const operand *b, const operand *out,
                                const_dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *desc)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnn.dnnl_matmul_primitive_desc_create(desc, dnn.engine, DESC(a), DESC(b), NULL,
                                                 DESC(out), attributes);
#else
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnn.dnnl_matmul_desc_init(&matmul, DESC(a), DESC(b), NULL, DESC(out));
    if (status != dnnl_success) return status;
    return dnn.dnnl_primitive_desc_create(desc, &matmul, attributes, dnn.engine, NULL);
#endif
}

static dnnl_status_t primitive_new(const operand *a, const operand *b, const operand *out,
                                   const_dnnl_primitive_attr_t attributes,
                                   dnnl_primitive_t *primitive)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = matmul_new(a, b, out, attributes, &desc);
    if (status != dnnl_success) return status;
    status = dnn.dnnl_primitive_create(primitive, desc);
    (void)dnn.dnnl_primitive_desc_destroy(desc);
    return status;
}

static dnnl_status_t execute_any(dnnl_primitive_t primitive, const dnnl_exec_arg_t *args, int count)
{
    dnnl_stream_t stream = NULL;
    embla_signals signals;
    dnnl_status_t status = dnn.dnnl_stream_create(&stream, dnn.engine, dnnl_stream_default_flags);
    if (status != dnnl_success) return status;
    embla_signals_block(&signals);
    status = dnn.dnnl_primitive_execute(primitive, stream, count, args);
    if (status == dnnl_success) status = dnn.dnnl_stream_wait(stream);
    embla_signals_restore(&signals);
    (void)dnn.dnnl_stream_destroy(stream);
    return status;
}

static dnnl_status_t execute(dnnl_primitive_t primitive, const operand *a, const operand *b,
                             const operand *out)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, a->memory}, {DNNL_ARG_WEIGHTS, b->memory}, {DNNL_ARG_DST, out->memory}};
    return execute_any(primitive, args, 3);
}

/* Where the numbers of an operand are one column, oneDNN 3.7.2 looks for them, or writes them, side
 * by side, whatever the stride says. */
static bool is_misread(const embla_product_bf16 *p)
{
    return (p->n == 1 && p->out_stride > 1) ||
           (p->m == 1 && p->form == EMBLA_PRODUCT_AT_B && p->a_stride > 1);
}

/* The three matrices where they are stored. */
static dnnl_status_t operands_new(const embla_product_bf16 *p, operand *a, operand *b, operand *out)
{
    dnnl_dim_t m = (dnnl_dim_t)p->m, n = (dnnl_dim_t)p->n, k = (dnnl_dim_t)p->k;
    dnnl_dim_t a_stride = (dnnl_dim_t)p->a_stride, b_stride = (dnnl_dim_t)p->b_stride;
    bool at = p->form == EMBLA_PRODUCT_AT_B, bt = p->form == EMBLA_PRODUCT_A_BT;
    dnnl_status_t status =
        operand_new(dnnl_bf16, (dnnl_dims_t){m, k},
                    (dnnl_dims_t){at ? 1 : a_stride, at ? a_stride : 1}, p->a, a);
    if (status == dnnl_success)
        status = operand_new(dnnl_bf16, (dnnl_dims_t){k, n},
                             (dnnl_dims_t){bt ? 1 : b_stride, bt ? b_stride : 1}, p->b, b);
    if (status == dnnl_success)
        status = operand_new(dnnl_f32, (dnnl_dims_t){m, n},
                             (dnnl_dims_t){(dnnl_dim_t)p->out_stride, 1}, p->out, out);
    return status;
}

/* ---- bf16, kept ---- */

/* To create a primitive takes as long as a small product. So each thread keeps the primitives of
 * the shapes that it used last, and gives them the addresses of the next factors. A primitive
 * shared by threads would share its scratch memory, too. */
typedef struct {
    embla_product_bf16 shape; /* its addresses mean nothing */
    operand a, b, out;
    dnnl_primitive_t primitive;
    uint64_t used; /* when, counted in products; 0 means never */
} kept_product;

/* A shape has SIDE places. */
enum { SETS = 64, SIDE = 4 };
typedef struct {
    kept_product products[SETS][SIDE];
    uint64_t now;
} kept_products;

static embla_thread_key kept_key;
static embla_once kept_once;
static bool kept_works; /* the system has a key for us */

static void kept_clear(kept_product *it)
{
    if (it->primitive) (void)dnn.dnnl_primitive_destroy(it->primitive);
    operand_free(&it->a);
    operand_free(&it->b);
    operand_free(&it->out);
    *it = (kept_product){0};
}

static void kept_free(void *memory)
{
    kept_products *all = memory;
    for (size_t i = 0; i < (size_t)SETS * SIDE; i++) kept_clear(&all->products[i / SIDE][i % SIDE]);
    embla_mem_free(all, sizeof *all);
}

static void kept_make_key(void)
{
    kept_works = embla_thread_key_new(kept_free, &kept_key);
}

/* The kept products of this thread; NULL if there is no memory for them. */
static kept_products *kept_mine(void)
{
    void *memory = NULL;
    embla_once_run(&kept_once, kept_make_key);
    if (!kept_works) return NULL;
    memory = embla_thread_value(kept_key);
    if (memory) return memory;
    if (embla_mem_new(sizeof(kept_products), "kept products", &memory) != EMBLA_OK) return NULL;
    if (embla_thread_set_value(kept_key, memory)) return memory;
    embla_mem_free(memory, sizeof(kept_products));
    return NULL;
}

static bool same_shape(const kept_product *it, const embla_product_bf16 *p)
{
    const embla_product_bf16 *s = &it->shape;
    return it->used > 0 && s->m == p->m && s->n == p->n && s->k == p->k && s->form == p->form &&
           s->add == p->add && s->a_stride == p->a_stride && s->b_stride == p->b_stride &&
           s->out_stride == p->out_stride;
}

static size_t set_of(const embla_product_bf16 *p)
{
    uint64_t x = embla_mix64(p->m * EMBLA_GOLDEN + p->n) + p->k;
    x = embla_mix64(x * EMBLA_GOLDEN + p->a_stride + p->b_stride) + p->out_stride;
    return embla_mix64(x * EMBLA_GOLDEN + (uint64_t)p->form * 2 + p->add) % SETS;
}

static dnnl_status_t kept_fill(const embla_product_bf16 *p, kept_product *it)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t status = operands_new(p, &it->a, &it->b, &it->out);
    if (status == dnnl_success) status = attributes_new(p->add, &attributes);
    if (status == dnnl_success)
        status = primitive_new(&it->a, &it->b, &it->out, attributes, &it->primitive);
    if (attributes) (void)dnn.dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t set_addresses(const embla_product_bf16 *p, const kept_product *it)
{
    const void *to[] = {p->a, p->b, p->out};
    const dnnl_memory_t memories[] = {it->a.memory, it->b.memory, it->out.memory};
    for (size_t i = 0; i < 3; i++) {
        dnnl_status_t status =
            dnn.dnnl_memory_set_data_handle(memories[i], (void *)(uintptr_t)to[i]);
        if (status != dnnl_success) return status;
    }
    return dnnl_success;
}

/* Finds the kept product of this shape, or creates it in place of the one of its set that was not
 * used for the longest time. */
static dnnl_status_t kept_find(const embla_product_bf16 *p, kept_products *all, kept_product **out)
{
    kept_product *set = all->products[set_of(p)], *oldest = set;
    all->now++;
    for (size_t i = 0; i < SIDE; i++) {
        kept_product *it = &set[i];
        if (same_shape(it, p)) {
            it->used = all->now;
            *out = it;
            return set_addresses(p, it);
        }
        if (it->used < oldest->used) oldest = it;
    }
    kept_clear(oldest);
    dnnl_status_t status = kept_fill(p, oldest);
    if (status != dnnl_success) {
        kept_clear(oldest);
        return status;
    }
    oldest->shape = *p;
    oldest->used = all->now;
    *out = oldest;
    return dnnl_success;
}

static dnnl_status_t matmul_bf16(const embla_product_bf16 *p)
{
    kept_products *all = kept_mine();
    kept_product *it = NULL;
    if (!all) return dnnl_out_of_memory;
    dnnl_status_t status = kept_find(p, all, &it);
    return status == dnnl_success ? execute(it->primitive, &it->a, &it->b, &it->out) : status;
}

static bool multiply_bf16(const embla_product_bf16 *p, embla_status *status)
{
    if (is_misread(p)) return false;
    int before = one_thread_begin();
    dnnl_status_t outcome = matmul_bf16(p);
    one_thread_end(before);
    if (outcome == dnnl_unimplemented) return false;
    *status = status_of(outcome, p->m, p->n, p->k);
    return true;
}

/* ---- bf16, prepared ---- */

struct embla_prepared {
    operand a, b, out; /* a and b are copies that oneDNN owns */
    dnnl_primitive_t primitive;
    size_t m, n, k;
};

/* A factor whose layout oneDNN may choose. */
static dnnl_status_t any_new(dnnl_dim_t rows, dnnl_dim_t columns, operand *out)
{
    const dnnl_dims_t shape = {rows, columns};
#if DNNL_VERSION_MAJOR >= 3
    return dnn.dnnl_memory_desc_create_with_tag(&out->desc, 2, shape, dnnl_bf16,
                                                dnnl_format_tag_any);
#else
    return dnn.dnnl_memory_desc_init_by_tag(&out->desc, 2, shape, dnnl_bf16, dnnl_format_tag_any);
#endif
}

/* Copies a factor into the layout that the product asks for. */
static dnnl_status_t reorder(const operand *from, const_dnnl_primitive_desc_t product,
                             dnnl_query_t which, operand *to)
{
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    __typeof__(dnn.dnnl_primitive_desc_query_md(product, which, 0)) layout =
        dnn.dnnl_primitive_desc_query_md(product, which, 0);
    dnnl_status_t status =
        dnn.dnnl_memory_create(&to->memory, layout, dnn.engine, DNNL_MEMORY_ALLOCATE);
    if (status == dnnl_success)
        status = dnn.dnnl_reorder_primitive_desc_create(&desc, DESC(from), dnn.engine, layout,
                                                        dnn.engine, NULL);
    if (status == dnnl_success) status = dnn.dnnl_primitive_create(&primitive, desc);
    if (status == dnnl_success)
        status = execute_any(
            primitive,
            (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from->memory}, {DNNL_ARG_TO, to->memory}}, 2);
    if (primitive) (void)dnn.dnnl_primitive_destroy(primitive);
    if (desc) (void)dnn.dnnl_primitive_desc_destroy(desc);
    return status;
}

static void prepared_free(embla_prepared *it)
{
    if (it->primitive) (void)dnn.dnnl_primitive_destroy(it->primitive);
    operand_free(&it->a);
    operand_free(&it->b);
    operand_free(&it->out);
    embla_mem_free(it, sizeof *it);
}

static dnnl_status_t prepare(const embla_product_bf16 *p, embla_prepared *it)
{
    operand a = {0}, b = {0};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = is_misread(p) ? dnnl_unimplemented : operands_new(p, &a, &b, &it->out);
    if (status == dnnl_success) status = any_new((dnnl_dim_t)p->m, (dnnl_dim_t)p->k, &it->a);
    if (status == dnnl_success) status = any_new((dnnl_dim_t)p->k, (dnnl_dim_t)p->n, &it->b);
    if (status == dnnl_success) status = attributes_new(p->add, &attributes);
    if (status == dnnl_success) status = matmul_new(&it->a, &it->b, &it->out, attributes, &desc);
    if (status == dnnl_success) status = reorder(&a, desc, dnnl_query_src_md, &it->a);
    if (status == dnnl_success) status = reorder(&b, desc, dnnl_query_weights_md, &it->b);
    if (status == dnnl_success) status = dnn.dnnl_primitive_create(&it->primitive, desc);
    if (desc) (void)dnn.dnnl_primitive_desc_destroy(desc);
    if (attributes) (void)dnn.dnnl_primitive_attr_destroy(attributes);
    operand_free(&a);
    operand_free(&b);
    return status;
}

static embla_status prepare_bf16(const embla_product_bf16 *p, embla_prepared **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof **out, "a prepared product", &memory));
    embla_prepared *it = memory;
    it->m = p->m, it->n = p->n, it->k = p->k;
    int threads = one_thread_begin();
    embla_status status = status_of(prepare(p, it), p->m, p->n, p->k);
    one_thread_end(threads);
    if (status == EMBLA_OK)
        *out = it;
    else
        prepared_free(it);
    return status;
}

static embla_status run(const embla_prepared *it)
{
    int threads = one_thread_begin();
    dnnl_status_t status = execute(it->primitive, &it->a, &it->b, &it->out);
    one_thread_end(threads);
    return status_of(status, it->m, it->n, it->k);
}

const embla_product_library embla_onednn = {.load = load,
                                            .multiply = multiply,
                                            .multiply_bf16 = multiply_bf16,
                                            .prepare_bf16 = prepare_bf16,
                                            .run = run,
                                            .prepared_free = prepared_free};
