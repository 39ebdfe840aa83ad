/* SPDX-License-Identifier: Apache-2.0 */
/* All that is known of oneDNN, CBLAS and LAPACKE. Types and enums come from their headers,
 * the functions are taken from the shared libraries when the first product is asked for:
 * linked, they would cost every start of the program some 10 ms, and OpenBLAS would start
 * threads in it.
 *
 * A product runs on the calling thread unless told otherwise. Callers share work out over
 * tiles of fixed size, so bits cannot depend on the number of threads. oneDNN asks OpenMP
 * how many threads to use, and OpenMP answers for the calling thread: it is told one.
 * OpenBLAS knows one number for the whole process: it is one while any such product runs.
 */
#include "engine/linalg.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "base/mem.h"
#include "base/threads.h"
#include "embla_lab.h"

#if defined(EMBLA_ENGINE_ONEDNN)
#include <dnnl.h>
#elif defined(EMBLA_ENGINE_CBLAS)
#include <cblas.h>
#endif
#ifdef EMBLA_WITH_LAPACKE
#include <lapacke.h>
#endif

#define FUNCTION(name) __typeof__(name) *name;

/* A sentence that is kept; the largest matrix: above it 32-bit LAPACK cannot count. */
enum { SENTENCE = 256, MOST_EIGEN = 32768 };

#if defined(EMBLA_ENGINE_ONEDNN) || defined(EMBLA_ENGINE_CBLAS) || defined(EMBLA_WITH_LAPACKE)
#define TAKE(name) table->name = (__typeof__(table->name))take(library, #name, &missing);

/* The first of names (ends with NULL) that can be loaded. It stays until the process ends. */
static void *load(const char *const *names, const char *package, char why[SENTENCE])
{
    char first[SENTENCE / 2] = "";
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        const char *error = dlerror();
        if (!*first) (void)snprintf(first, sizeof first, "%s", error ? error : *names);
    }
    (void)snprintf(why, SENTENCE, "%s; install %s", first, package);
    return NULL;
}

static void *take(void *library, const char *name, const char **missing)
{
    void *found = dlsym(library, name);
    if (!found && !*missing) *missing = name;
    return found;
}
#endif

/* What is asked of OpenBLAS beyond CBLAS; each NULL where another library serves. */
typedef struct {
    char *(*corename)(void), *(*config)(void);
    int (*get_threads)(void);
    void (*set_threads)(int);
} openblas;

#if defined(EMBLA_ENGINE_CBLAS) || defined(EMBLA_WITH_LAPACKE)
static openblas openblas_of(void *library)
{
    return (openblas){.corename = (char *(*)(void))dlsym(library, "openblas_get_corename"),
                      .config = (char *(*)(void))dlsym(library, "openblas_get_config"),
                      .get_threads = (int (*)(void))dlsym(library, "openblas_get_num_threads"),
                      .set_threads = (void (*)(int))dlsym(library, "openblas_set_num_threads")};
}

/* One thread for all of OpenBLAS, from the first caller in until the last is out. */
static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER;
static int blas_callers, blas_threads;

static void blas_alone(const openblas *blas)
{
    if (!blas->get_threads || !blas->set_threads) return;
    (void)pthread_mutex_lock(&blas_lock);
    if (blas_callers++ == 0) {
        blas_threads = blas->get_threads();
        if (blas_threads > 1) blas->set_threads(1);
    }
    (void)pthread_mutex_unlock(&blas_lock);
}

static void blas_back(const openblas *blas)
{
    if (!blas->get_threads || !blas->set_threads) return;
    (void)pthread_mutex_lock(&blas_lock);
    if (--blas_callers == 0 && blas_threads > 1) blas->set_threads(blas_threads);
    (void)pthread_mutex_unlock(&blas_lock);
}

/* OpenBLAS chooses kernels by the CPU's model number; one that is newer than itself gets the
 * oldest kernels there are, whatever it can do. */
static const char *slow_core(const openblas *blas, char text[SENTENCE])
{
#if defined(__x86_64__)
    static const char *const old[] = {
        /* clang-format off */
        "Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2", "Penryn",
        "Dunnington", "Nehalem", "Sandybridge", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona",
        "Nano", "Bobcat", "Bulldozer", "Piledriver", "Steamroller", "Generic", "generic",
        "Unknown", "unknown"
        /* clang-format on */
    };
    const char *core = blas->corename ? blas->corename() : NULL;
    __builtin_cpu_init();
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (!core || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return NULL;
    if (getenv("OPENBLAS_CORETYPE")) return NULL; /* somebody chose this core */
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        if (strcmp(core, old[i]) != 0) continue;
        (void)snprintf(text, SENTENCE,
                       "OpenBLAS takes this CPU for a %s though it has %s, and is several times "
                       "slower for it; set OPENBLAS_CORETYPE=%s in the environment",
                       core, wide ? "AVX-512" : "AVX2", wide ? "SkylakeX" : "Haswell");
        return text;
    }
#else
    (void)blas, (void)text;
#endif
    return NULL;
}
#endif

/* ---- the engine of products ---- */

static pthread_once_t engine_once = PTHREAD_ONCE_INIT;
static atomic_int bf16_wanted = -1; /* by a test; below 0: by nobody */
static char engine_name[64] = "none", engine_error[SENTENCE], engine_slow[SENTENCE];

#if defined(EMBLA_ENGINE_ONEDNN)

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error                                                                                             \
    "this oneDNN has threads of its own; build with -DEMBLA_ENGINE=cblas, or take one with OpenMP"
#endif
#if DNNL_VERSION_MAJOR >= 3
#define DNNL_MAJOR "3"
#else
#define DNNL_MAJOR "2"
#endif

/* clang-format off */
#define DNNL_COMMON(X)                                                                             \
    X(dnnl_version) X(dnnl_sgemm) X(dnnl_get_effective_cpu_isa) X(dnnl_engine_create)              \
    X(dnnl_stream_create) X(dnnl_stream_wait) X(dnnl_stream_destroy)                               \
    X(dnnl_memory_create) X(dnnl_memory_destroy) X(dnnl_primitive_create)                          \
    X(dnnl_primitive_execute) X(dnnl_primitive_destroy) X(dnnl_primitive_desc_destroy)             \
    X(dnnl_primitive_attr_create) X(dnnl_primitive_attr_destroy)                                   \
    X(dnnl_primitive_attr_set_post_ops) X(dnnl_post_ops_create) X(dnnl_post_ops_destroy)           \
    X(dnnl_post_ops_append_sum)
#if DNNL_VERSION_MAJOR >= 3
#define DNNL_FUNCTIONS(X)                                                                          \
    DNNL_COMMON(X) X(dnnl_memory_desc_create_with_strides) X(dnnl_memory_desc_destroy)             \
    X(dnnl_matmul_primitive_desc_create)
#else
#define DNNL_FUNCTIONS(X)                                                                          \
    DNNL_COMMON(X) X(dnnl_memory_desc_init_by_strides) X(dnnl_matmul_desc_init)                    \
    X(dnnl_primitive_desc_create)
#endif
/* clang-format on */

typedef struct {
    DNNL_FUNCTIONS(FUNCTION)
    /* of the OpenMP that it is bound to, which need not be ours; NULL: it uses none */
    int (*omp_get_max_threads)(void), (*omp_in_parallel)(void);
    void (*omp_set_num_threads)(int);
    dnnl_engine_t engine;
    bool bf16; /* the CPU multiplies bf16 itself */
} dnnl;
static dnnl dnn;

static const char *take_dnnl(void *library, dnnl *table)
{
    const char *missing = NULL;
    DNNL_FUNCTIONS(TAKE)
    return missing;
}

/* The loader binds a library's names to the program's own libraries first, then to those the
 * library asks for. The same order finds the OpenMP that oneDNN asks: libgomp, or the libomp
 * of a program that was built with clang. */
static const char *take_openmp(void *library, dnnl *table)
{
    const char *missing = NULL;
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program && dlsym(program, "omp_get_max_threads")) library = program;
    TAKE(omp_get_max_threads)
    TAKE(omp_in_parallel)
    TAKE(omp_set_num_threads)
#else
    (void)library, (void)table;
#endif
    return missing;
}

static void load_engine(void)
{
    static const char *const names[] = {"libdnnl.so." DNNL_MAJOR, NULL};
    void *library = load(names, "oneDNN (Debian: libdnnl" DNNL_MAJOR ")", engine_error);
    if (!library) return;
    const char *missing = take_dnnl(library, &dnn);
    if (!missing) missing = take_openmp(library, &dnn);
    if (missing) {
        (void)snprintf(engine_error, sizeof engine_error, "%s has no %s", names[0], missing);
        return;
    }
    if (dnn.dnnl_engine_create(&dnn.engine, dnnl_cpu, 0) != dnnl_success) {
        (void)snprintf(engine_error, sizeof engine_error, "%s does not start", names[0]);
        return;
    }
    dnn.bf16 = (dnn.dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
               dnnl_cpu_isa_avx512_core_bf16;
    const dnnl_version_t *version = dnn.dnnl_version();
    (void)snprintf(engine_name, sizeof engine_name, "oneDNN %d.%d.%d", version->major,
                   version->minor, version->patch);
}

/* The number of threads to go back to; 0: nothing was changed. */
static int go_alone(void)
{
    if (!dnn.omp_in_parallel || dnn.omp_in_parallel()) return 0; /* there it does so by itself */
    int was = dnn.omp_get_max_threads();
    if (was == 1) return 0;
    dnn.omp_set_num_threads(1);
    return was;
}

static void go_back(int was)
{
    if (was > 0) dnn.omp_set_num_threads(was);
}

static embla_status refused(dnnl_status_t status, size_t m, size_t n, size_t k)
{
    if (status == dnnl_success) return EMBLA_OK;
    return embla_fail(status == dnnl_out_of_memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_UNSUPPORTED,
                      "%s refused a product of %zu x %zu by %zu x %zu (its status %d)", engine_name,
                      m, k, k, n, (int)status);
}

/* oneDNN's AVX-512 code keeps numbers in the stack pointer for a while (seen in 2.6.3): the
 * system would put the frame of a signal handler wherever that points, over the heap. So no
 * signal is handled while it runs but those that it would raise itself. */
static void hold_signals(sigset_t *was)
{
    static const int its_own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t held;
    (void)sigfillset(&held);
    for (size_t i = 0; i < sizeof its_own / sizeof its_own[0]; i++)
        (void)sigdelset(&held, its_own[i]);
    (void)pthread_sigmask(SIG_BLOCK, &held, was);
}

/* The engine's own threads are those of OpenMP, which have the mask of who made them. */
static void hold_for(bool spread, sigset_t *was)
{
    hold_signals(was);
    if (!spread) return;
#pragma omp parallel
    {
        sigset_t theirs;
        hold_signals(&theirs);
    }
}

static void release_for(bool spread, const sigset_t *was)
{
    if (spread) {
#pragma omp parallel
        (void)pthread_sigmask(SIG_SETMASK, was, NULL);
    }
    (void)pthread_sigmask(SIG_SETMASK, was, NULL);
}

static embla_status multiply(const embla_product *p)
{
    sigset_t signals;
    hold_for(p->spread, &signals);
    int was = p->spread ? 0 : go_alone();
    dnnl_status_t status = dnn.dnnl_sgemm(
        p->form == EMBLA_AT_B ? 'T' : 'N', p->form == EMBLA_A_BT ? 'T' : 'N', (dnnl_dim_t)p->m,
        (dnnl_dim_t)p->n, (dnnl_dim_t)p->k, 1.0f, p->a, (dnnl_dim_t)p->a_stride, p->b,
        (dnnl_dim_t)p->b_stride, p->add ? 1.0f : 0.0f, p->out, (dnnl_dim_t)p->out_stride);
    go_back(was);
    release_for(p->spread, &signals);
    return refused(status, p->m, p->n, p->k);
}

/* What lies in memory, and how. A descriptor is a struct in 2.x, a handle in 3.x. */
typedef struct {
    dnnl_memory_desc_t desc;
    dnnl_memory_t memory;
} operand;

#if DNNL_VERSION_MAJOR >= 3
#define DESC(it) ((it)->desc)
#else
#define DESC(it) (&(it)->desc)
#endif

static dnnl_status_t operand_of(dnnl_data_type_t type, const dnnl_dims_t shape,
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

/* What is done beside the product: with add its result is added to what out holds. */
static dnnl_status_t attributes_of(bool add, dnnl_primitive_attr_t *out)
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

static dnnl_status_t primitive_of(const operand *a, const operand *b, const operand *out,
                                  const_dnnl_primitive_attr_t attributes,
                                  dnnl_primitive_t *primitive)
{
    dnnl_primitive_desc_t desc = NULL;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status = dnn.dnnl_matmul_primitive_desc_create(
        &desc, dnn.engine, DESC(a), DESC(b), NULL, DESC(out), attributes);
#else
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnn.dnnl_matmul_desc_init(&matmul, DESC(a), DESC(b), NULL, DESC(out));
    if (status == dnnl_success)
        status = dnn.dnnl_primitive_desc_create(&desc, &matmul, attributes, dnn.engine, NULL);
#endif
    if (status != dnnl_success) return status;
    status = dnn.dnnl_primitive_create(primitive, desc);
    (void)dnn.dnnl_primitive_desc_destroy(desc);
    return status;
}

static dnnl_status_t execute(dnnl_primitive_t primitive, const operand *a, const operand *b,
                             const operand *out)
{
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, a->memory}, {DNNL_ARG_WEIGHTS, b->memory}, {DNNL_ARG_DST, out->memory}};
    dnnl_stream_t stream = NULL;
    sigset_t signals;
    dnnl_status_t status = dnn.dnnl_stream_create(&stream, dnn.engine, dnnl_stream_default_flags);
    if (status != dnnl_success) return status;
    hold_signals(&signals);
    status = dnn.dnnl_primitive_execute(primitive, stream, 3, args);
    if (status == dnnl_success) status = dnn.dnnl_stream_wait(stream);
    release_for(false, &signals);
    (void)dnn.dnnl_stream_destroy(stream);
    return status;
}

/* The primitive is made anew for each product: oneDNN keeps what it compiled by shape, for all
 * threads, and one made on another thread would share its scratch memory. */
static dnnl_status_t matmul_bf16(const embla_product_bf16 *p)
{
    dnnl_dim_t m = (dnnl_dim_t)p->m, n = (dnnl_dim_t)p->n, k = (dnnl_dim_t)p->k;
    dnnl_dim_t a_stride = (dnnl_dim_t)p->a_stride, b_stride = (dnnl_dim_t)p->b_stride;
    bool a_turned = p->form == EMBLA_AT_B, b_turned = p->form == EMBLA_A_BT;
    operand a = {0}, b = {0}, out = {0};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_status_t status =
        operand_of(dnnl_bf16, (dnnl_dims_t){m, k},
                   (dnnl_dims_t){a_turned ? 1 : a_stride, a_turned ? a_stride : 1}, p->a, &a);
    if (status == dnnl_success)
        status =
            operand_of(dnnl_bf16, (dnnl_dims_t){k, n},
                       (dnnl_dims_t){b_turned ? 1 : b_stride, b_turned ? b_stride : 1}, p->b, &b);
    if (status == dnnl_success)
        status = operand_of(dnnl_f32, (dnnl_dims_t){m, n},
                            (dnnl_dims_t){(dnnl_dim_t)p->out_stride, 1}, p->out, &out);
    if (status == dnnl_success) status = attributes_of(p->add, &attributes);
    if (status == dnnl_success) status = primitive_of(&a, &b, &out, attributes, &primitive);
    if (status == dnnl_success) status = execute(primitive, &a, &b, &out);
    if (primitive) (void)dnn.dnnl_primitive_destroy(primitive);
    if (attributes) (void)dnn.dnnl_primitive_attr_destroy(attributes);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
    return status;
}

/* False: not by this CPU. Without instructions for bf16 widening first is faster. */
static bool multiply_bf16(const embla_product_bf16 *p, embla_status *status)
{
    if (!embla_linalg_has_bf16()) return false;
    int was = go_alone();
    dnnl_status_t said = matmul_bf16(p);
    go_back(was);
    if (said == dnnl_unimplemented) return false;
    *status = refused(said, p->m, p->n, p->k);
    return true;
}

#elif defined(EMBLA_ENGINE_CBLAS)

static struct engine_cblas {
    FUNCTION(cblas_sgemm)
    openblas blas;
} cblas;

static void load_engine(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3", NULL};
    struct engine_cblas *table = &cblas;
    const char *missing = NULL;
    void *library = load(names, "OpenBLAS (Debian: libopenblas0)", engine_error);
    if (!library) return;
    TAKE(cblas_sgemm)
    if (missing) {
        (void)snprintf(engine_error, sizeof engine_error, "the BLAS that is installed has no %s",
                       missing);
        return;
    }
    cblas.blas = openblas_of(library);
    /* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH .." */
    (void)snprintf(engine_name, sizeof engine_name, "%s",
                   cblas.blas.config ? cblas.blas.config() : "CBLAS");
    char *space = strchr(engine_name, ' ');
    if (space && (space = strchr(space + 1, ' '))) *space = '\0';
    if (cblas.blas.corename) {
        size_t used = strlen(engine_name);
        (void)snprintf(engine_name + used, sizeof engine_name - used, " (%s)",
                       cblas.blas.corename());
    }
    (void)slow_core(&cblas.blas, engine_slow);
}

static embla_status multiply(const embla_product *p)
{
    size_t most = p->m > p->n ? p->m : p->n;
    most = p->k > most ? p->k : most;
    most = p->a_stride > most ? p->a_stride : most;
    most = p->b_stride > most ? p->b_stride : most;
    most = p->out_stride > most ? p->out_stride : most;
    if (most > INT_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "a product with a side of %zu; %s takes %d", most,
                          engine_name, INT_MAX);
    if (!p->spread) blas_alone(&cblas.blas);
    cblas.cblas_sgemm(CblasRowMajor, p->form == EMBLA_AT_B ? CblasTrans : CblasNoTrans,
                      p->form == EMBLA_A_BT ? CblasTrans : CblasNoTrans, (int)p->m, (int)p->n,
                      (int)p->k, 1.0f, p->a, (int)p->a_stride, p->b, (int)p->b_stride,
                      p->add ? 1.0f : 0.0f, p->out, (int)p->out_stride);
    if (!p->spread) blas_back(&cblas.blas);
    return EMBLA_OK;
}

#else

static void load_engine(void)
{
    (void)snprintf(engine_error, sizeof engine_error,
                   "this build has no engine for matrix products; install oneDNN (Debian: "
                   "libdnnl-dev) or OpenBLAS (libopenblas-dev), then build again");
}

static embla_status multiply(const embla_product *p)
{
    (void)p;
    return EMBLA_ERR_UNSUPPORTED;
}

#endif

#ifdef EMBLA_ENGINE_ONEDNN
static bool engine_has_bf16(void)
{
    return dnn.bf16;
}
#else
static bool engine_has_bf16(void)
{
    return false;
}

static bool multiply_bf16(const embla_product_bf16 *p, embla_status *status)
{
    (void)p, (void)status;
    return false;
}
#endif

static embla_status engine_ready(void)
{
    (void)pthread_once(&engine_once, load_engine);
    if (*engine_error) return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s", engine_error);
    return EMBLA_OK;
}

/* ---- products ---- */

static void clear(float *out, size_t m, size_t n, size_t stride)
{
    for (size_t i = 0; i < m; i++) memset(out + i * stride, 0, n * sizeof *out);
}

static embla_status check_strides(size_t a_width, size_t a_stride, size_t b_width, size_t b_stride,
                                  size_t n, size_t out_stride)
{
    if (a_stride < a_width || b_stride < b_width || out_stride < n)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "strides %zu, %zu, %zu of a product; rows have %zu, %zu, %zu numbers",
                          a_stride, b_stride, out_stride, a_width, b_width, n);
    return EMBLA_OK;
}

embla_status embla_linalg_product(const embla_product *product)
{
    embla_product p = *product;
    size_t a_width = p.form == EMBLA_AT_B ? p.m : p.k, b_width = p.form == EMBLA_A_BT ? p.k : p.n;
    EMBLA_TRY(check_strides(a_width, p.a_stride, b_width, p.b_stride, p.n, p.out_stride));
    EMBLA_TRY(engine_ready());
    if (p.m == 0 || p.n == 0) return EMBLA_OK;
    if (p.k == 0) {
        if (!p.add) clear(p.out, p.m, p.n, p.out_stride);
        return EMBLA_OK;
    }
    /* after a fork OpenMP has no threads, and would wait for them */
    if (p.spread && embla_threads_for(0, SIZE_MAX) == 1) p.spread = false;
    return multiply(&p);
}

/* rows x n numbers as f32, close together. */
static void widen(const uint16_t *in, size_t stride, size_t rows, size_t n, float *out)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)in[r * stride + i] << 16;
            memcpy(&out[r * n + i], &bits, sizeof bits);
        }
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* bf16 as f32, a block at a time: so many rows of out, columns of out and numbers of a sum.
 * The blocks of both factors fill EMBLA_BF16_SPACE. */
enum { HIGH = 256, WIDE = 512, DEEP = 512 };
_Static_assert((HIGH + WIDE) * DEEP == EMBLA_BF16_SPACE, "room for both blocks");

/* Rows i.. and numbers k.. of a; numbers k.. and columns j.. of b: as the form has them. */
static void widen_a(const embla_product_bf16 *p, size_t i, size_t k, embla_product *part, float *to)
{
    bool turned = p->form == EMBLA_AT_B;
    part->a = to;
    part->a_stride = turned ? part->m : part->k;
    if (turned)
        widen(p->a + k * p->a_stride + i, p->a_stride, part->k, part->m, to);
    else
        widen(p->a + i * p->a_stride + k, p->a_stride, part->m, part->k, to);
}

static void widen_b(const embla_product_bf16 *p, size_t j, size_t k, embla_product *part, float *to)
{
    bool turned = p->form == EMBLA_A_BT;
    part->b = to;
    part->b_stride = turned ? part->k : part->n;
    if (turned)
        widen(p->b + j * p->b_stride + k, p->b_stride, part->n, part->k, to);
    else
        widen(p->b + k * p->b_stride + j, p->b_stride, part->k, part->n, to);
}

static embla_status widened(const embla_product_bf16 *p, float *space)
{
    embla_product part = {.form = p->form, .out_stride = p->out_stride};
    for (size_t k = 0; k < p->k; k += DEEP) {
        part.k = least(DEEP, p->k - k);
        part.add = p->add || k > 0;
        for (size_t j = 0; j < p->n; j += WIDE) {
            part.n = least(WIDE, p->n - j);
            widen_b(p, j, k, &part, space + HIGH * DEEP);
            for (size_t i = 0; i < p->m; i += HIGH) {
                part.m = least(HIGH, p->m - i);
                part.out = p->out + i * p->out_stride + j;
                widen_a(p, i, k, &part, space);
                EMBLA_TRY(multiply(&part));
            }
        }
    }
    return EMBLA_OK;
}

bool embla_linalg_has_engine(void)
{
    (void)pthread_once(&engine_once, load_engine);
    return !*engine_error;
}

bool embla_linalg_has_bf16(void)
{
    int wanted = atomic_load_explicit(&bf16_wanted, memory_order_relaxed);
    (void)pthread_once(&engine_once, load_engine);
    return wanted < 0 ? engine_has_bf16() : wanted > 0;
}

void embla_linalg_use_bf16(int use)
{
    atomic_store(&bf16_wanted, use);
}

embla_status embla_linalg_product_bf16(const embla_product_bf16 *p)
{
    size_t a_width = p->form == EMBLA_AT_B ? p->m : p->k;
    size_t b_width = p->form == EMBLA_A_BT ? p->k : p->n, bytes = EMBLA_BF16_SPACE * sizeof(float);
    embla_status status = EMBLA_OK;
    void *space;
    EMBLA_TRY(check_strides(a_width, p->a_stride, b_width, p->b_stride, p->n, p->out_stride));
    EMBLA_TRY(engine_ready());
    if (p->m == 0 || p->n == 0) return EMBLA_OK;
    if (p->k == 0) {
        if (!p->add) clear(p->out, p->m, p->n, p->out_stride);
        return EMBLA_OK;
    }
    if (multiply_bf16(p, &status)) return status;
    if (p->space) return widened(p, p->space);
    EMBLA_TRY(embla_mem_new(bytes, "bf16 as f32", &space));
    status = widened(p, space);
    embla_mem_free(space, bytes);
    return status;
}

embla_status embla_engine_product(embla_product_form form, const float *a, const float *b, size_t m,
                                  size_t n, size_t k, float *out)
{
    if (form != EMBLA_A_BT && form != EMBLA_A_B && form != EMBLA_AT_B)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_engine_product: there is no form %d",
                          (int)form);
    if ((!a && m > 0 && k > 0) || (!b && n > 0 && k > 0) || (!out && m > 0 && n > 0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_engine_product: a, b or out is NULL");
    embla_product product = {
        .m = m, .n = n, .k = k, .a = a, .b = b, .out = out, .form = form, .spread = true};
    product.a_stride = form == EMBLA_AT_B ? m : k;
    product.b_stride = form == EMBLA_A_BT ? k : n;
    product.out_stride = n;
    return embla_linalg_product(&product);
}

/* ---- eigenvalues ---- */

static pthread_once_t lapack_once = PTHREAD_ONCE_INIT;
static atomic_bool lapack_loaded;
static char lapack_error[SENTENCE], lapack_slow[SENTENCE];

#ifdef EMBLA_WITH_LAPACKE

#define LAPACK_FUNCTIONS(X) X(LAPACKE_dsytrd) X(LAPACKE_dsterf) X(LAPACKE_dstemr) X(LAPACKE_dormtr)
static struct engine_lapack {
    LAPACK_FUNCTIONS(FUNCTION)
    openblas blas;
} lapack;

static void load_lapack(void)
{
    static const char *const names[] = {"liblapacke.so.3", NULL};
    struct engine_lapack *table = &lapack;
    const char *missing = NULL;
    void *library = load(names, "LAPACKE (Debian: liblapacke)", lapack_error);
    if (!library) return;
    LAPACK_FUNCTIONS(TAKE)
    if (missing)
        (void)snprintf(lapack_error, sizeof lapack_error, "%s has no %s", names[0], missing);
    lapack.blas = openblas_of(library);
    (void)slow_core(&lapack.blas, lapack_slow);
    atomic_store(&lapack_loaded, true);
}

/* The matrix is made tridiagonal once; from that all values, and the vectors that are wanted,
 * are found apart: a fraction of the work of all vectors. */
enum { DIAGONAL, BESIDE, TURNS, COPY, COPY_BESIDE, FOUND, PARTS };

static lapack_int largest(size_t n, size_t vectors, double *parts[PARTS], lapack_int *support,
                          double *out)
{
    lapack_int size = (lapack_int)n, count = 0, tryrac = 1;
    lapack_int first = size - (lapack_int)vectors + 1;
    return lapack.LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', size, parts[COPY], parts[COPY_BESIDE],
                                 0.0, 0.0, first, size, &count, parts[FOUND], out, size,
                                 (lapack_int)vectors, support, &tryrac);
}

static lapack_int solve(double *matrix, size_t n, size_t vectors, double *parts[PARTS],
                        lapack_int *support, double *out)
{
    lapack_int size = (lapack_int)n;
    lapack_int info = lapack.LAPACKE_dsytrd(LAPACK_COL_MAJOR, 'L', size, matrix, size,
                                            parts[DIAGONAL], parts[BESIDE], parts[TURNS]);
    if (info != 0) return info;
    memcpy(parts[COPY], parts[DIAGONAL], n * sizeof(double));
    memcpy(parts[COPY_BESIDE], parts[BESIDE], n * sizeof(double));
    if (vectors > 0) info = largest(n, vectors, parts, support, out);
    if (info == 0 && vectors > 0)
        info = lapack.LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', size, (lapack_int)vectors,
                                     matrix, size, parts[TURNS], out, size);
    if (info == 0) info = lapack.LAPACKE_dsterf(size, parts[DIAGONAL], parts[BESIDE]);
    return info;
}

static embla_status eigen(double *matrix, size_t n, size_t vectors, double *values, double *out)
{
    size_t bytes = (PARTS * n + 2 * vectors + n * vectors) * sizeof(double);
    double *parts[PARTS];
    void *space;
    EMBLA_TRY(embla_mem_new(bytes, "eigenvalues", &space));
    for (size_t i = 0; i < PARTS; i++) parts[i] = (double *)space + i * n;
    double *support = (double *)space + PARTS * n, *found = support + 2 * vectors;
    blas_alone(&lapack.blas);
    lapack_int info = solve(matrix, n, vectors, parts, (lapack_int *)(void *)support, found);
    blas_back(&lapack.blas);
    if (info == 0) {
        memcpy(values, parts[DIAGONAL], n * sizeof *values);
        if (vectors > 0) memcpy(out, found, n * vectors * sizeof *out);
    }
    embla_mem_free(space, bytes);
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for the eigenvalues of %zu x %zu", n, n);
    if (info != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "LAPACK found no eigenvalues of a %zu x %zu matrix (its status %d)", n, n,
                          (int)info);
    return EMBLA_OK;
}

#else

static void load_lapack(void)
{
    (void)snprintf(lapack_error, sizeof lapack_error,
                   "this build has no engine for eigenvalues; install LAPACKE (Debian: "
                   "liblapacke-dev), then build again");
}

static embla_status eigen(double *matrix, size_t n, size_t vectors, double *values, double *out)
{
    (void)matrix, (void)n, (void)vectors, (void)values, (void)out;
    return EMBLA_ERR_UNSUPPORTED;
}

#endif

embla_status embla_linalg_eigen(double *matrix, size_t n, size_t vectors, double *values,
                                double *out)
{
    if (n > MOST_EIGEN || vectors > n)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu eigenvectors of a %zu x %zu matrix; at most %d x %d", vectors, n, n,
                          MOST_EIGEN, MOST_EIGEN);
    (void)pthread_once(&lapack_once, load_lapack);
    if (*lapack_error) return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s", lapack_error);
    if (n == 0) return EMBLA_OK;
    return eigen(matrix, n, vectors, values, out);
}

/* ---- for bug reports ---- */

const char *embla_engine_name(void)
{
    (void)pthread_once(&engine_once, load_engine);
    return engine_name;
}

const char *embla_engine_warning(void)
{
    (void)pthread_once(&engine_once, load_engine);
    if (*engine_error) return engine_error;
    if (*engine_slow) return engine_slow;
    /* of eigenvalues only where they were asked for: this loads no second library */
    return atomic_load(&lapack_loaded) && *lapack_slow ? lapack_slow : NULL;
}
