/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: products against sums in double, eigenvalues by what defines them. And what
 * is ours about it: strides, one thread, the same bits, and a sentence where a library is not
 * there. dlopen is taken over here, so that it can say no; what must not have loaded the
 * libraries before runs in a child.
 */
#include "engine.h"
#include "slow.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/engine.h"

static const char *refused_name; /* names with this in them are not found */

void *dlopen(const char *name, int flags);
void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    if (!real) real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    bool refuse = name && refused_name && strstr(name, refused_name);
    return real(refuse ? "nowhere/libnone.so" : name, flags); /* and dlerror has its sentence */
}

/* ---- products ---- */

/* Numbers in places of their own: rows are stride apart, NaN lies between them. */
static float *matrix(size_t rows, size_t width, size_t stride, uint64_t seed)
{
    float *out = malloc((rows * stride + 1) * sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < rows * stride; i++)
        out[i] = i % stride < width ? check_unit(&seed) : check_float_of(0x7fc00000);
    return out;
}

static double wanted(const embla_product *p, size_t i, size_t j, double *size)
{
    double sum = 0;
    *size = 0;
    for (size_t k = 0; k < p->k; k++) {
        float a =
            p->form == EMBLA_PRODUCT_AT_B ? p->a[k * p->a_stride + i] : p->a[i * p->a_stride + k];
        float b =
            p->form == EMBLA_PRODUCT_A_BT ? p->b[j * p->b_stride + k] : p->b[k * p->b_stride + j];
        sum += (double)a * (double)b;
        *size += fabs((double)a * (double)b);
    }
    return sum;
}

static void check_product(embla_product p)
{
    bool turned = p.form == EMBLA_PRODUCT_AT_B;
    size_t a_rows = turned ? p.k : p.m, a_width = turned ? p.m : p.k;
    size_t b_rows = p.form == EMBLA_PRODUCT_A_BT ? p.n : p.k,
           b_width = p.form == EMBLA_PRODUCT_A_BT ? p.k : p.n;
    size_t gap = p.m % 3;
    p.a_stride = a_width + gap;
    p.b_stride = b_width + 2 * gap;
    p.out_stride = p.n + gap;
    float *a = matrix(a_rows, a_width, p.a_stride, 1), *b = matrix(b_rows, b_width, p.b_stride, 2);
    float *before = matrix(p.m, p.n, p.out_stride, 3);
    check_guarded g = check_guard(p.m * p.out_stride * sizeof(float), 4 * (p.n % 5));
    p.a = a;
    p.b = b;
    p.out = (float *)(void *)g.bytes;
    memcpy(p.out, before, g.size);
    assert_ok(embla_engine_product(&p));
    check_guards(&g);
    for (size_t i = 0; i < p.m * p.out_stride; i++) {
        size_t row = i / p.out_stride, column = i % p.out_stride;
        double size;
        if (column >= p.n) { /* what lies between rows is not ours */
            assert_true(isnan(p.out[i]));
            continue;
        }
        double sum = wanted(&p, row, column, &size) + (p.add ? (double)before[i] : 0);
        assert_near(p.out[i], sum, 1e-6 * (size + 1));
    }
    check_guard_free(&g);
    free(a), free(b), free(before);
}

static void a_product_is_what_it_says(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {1, 7, 3},    {5, 1, 9},     {2, 3, 1},
                                      {16, 16, 16}, {17, 33, 65}, {64, 50, 300}, {130, 70, 513}};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (int form = EMBLA_PRODUCT_A_BT; form <= EMBLA_PRODUCT_AT_B; form++)
            for (int add = 0; add < 2; add++)
                check_product((embla_product){.m = sizes[s][0],
                                              .n = sizes[s][1],
                                              .k = sizes[s][2],
                                              .form = (embla_product_form)form,
                                              .add = add});
}

static void sizes_of_zero_are_fine(void **state)
{
    float a[4] = {1, 2, 3, 4}, out[4] = {5, 6, 7, 8};
    embla_product p = {.m = 2, .n = 2, .a = a, .b = a, .out = out, .out_stride = 2, .add = true};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(embla_engine_product(&p));
    assert_true(out[0] == 5 && out[3] == 8);
    p.add = false;
    assert_ok(embla_engine_product(&p)); /* a sum of nothing */
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 0 && out[3] == 0);
    assert_ok(embla_engine_product(&(embla_product){0}));
    assert_ok(embla_engine_product(
        &(embla_product){.n = 3, .k = 3, .a_stride = 3, .b_stride = 3, .out_stride = 3}));
    uint16_t bits[2] = {0};
    out[0] = 9;
    assert_ok(embla_engine_product_bf16(
        &(embla_product_bf16){.m = 1, .n = 1, .a = bits, .b = bits, .out = out, .out_stride = 1}));
    assert_true(out[0] == 0);
}

static void strides_that_are_too_short_are_refused(void **state)
{
    float a[8] = {0}, out[8] = {1};
    uint16_t bits[8] = {0};
    embla_product p = {.m = 2, .n = 3, .k = 4, .a = a, .b = a, .out = out};
    static const size_t strides[][3] = {{3, 4, 3}, {4, 3, 3}, {4, 4, 2}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(strides); s++) {
        p.a_stride = strides[s][0];
        p.b_stride = strides[s][1];
        p.out_stride = strides[s][2];
        assert_status(embla_engine_product(&p), EMBLA_ERR_ARGUMENT);
        assert_error_has("its rows have 4, 4 and 3 numbers");
        assert_status(embla_engine_product_bf16(&(embla_product_bf16){.m = 2,
                                                                      .n = 3,
                                                                      .k = 4,
                                                                      .a = bits,
                                                                      .b = bits,
                                                                      .out = out,
                                                                      .a_stride = p.a_stride,
                                                                      .b_stride = p.b_stride,
                                                                      .out_stride = p.out_stride}),
                      EMBLA_ERR_ARGUMENT);
    }
    assert_true(out[0] == 1);
}

/* A product of matrices without gaps between their rows. */
static embla_status dense(embla_product_form form, const float *a, const float *b, size_t m,
                          size_t n, size_t k, float *out)
{
    return embla_engine_product(&(embla_product){.m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .a = a,
                                                 .b = b,
                                                 .a_stride = form == EMBLA_PRODUCT_AT_B ? m : k,
                                                 .b_stride = form == EMBLA_PRODUCT_A_BT ? k : n,
                                                 .out = out,
                                                 .out_stride = n,
                                                 .form = form});
}

static void a_product_has_three_forms(void **state)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[3] = {10, 100, 1000}, out[6] = {0};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(dense(EMBLA_PRODUCT_A_BT, a, b, 2, 1, 3, out));
    assert_true(out[0] == 3210 && out[1] == 6540 && out[2] == 0);
    assert_ok(dense(EMBLA_PRODUCT_A_B, a, b, 2, 1, 3, out));
    assert_true(out[0] == 3210 && out[1] == 6540 && out[2] == 0);
    assert_ok(dense(EMBLA_PRODUCT_A_B, b, a, 1, 2, 3, out)); /* a as 3 x 2 */
    assert_true(out[0] == 5310 && out[1] == 6420 && out[2] == 0);
    assert_ok(dense(EMBLA_PRODUCT_AT_B, a, b, 2, 1, 3, out));
    assert_true(out[0] == 5310 && out[1] == 6420 && out[2] == 0);
    assert_ok(dense(EMBLA_PRODUCT_AT_B, NULL, NULL, 0, 0, 3, NULL));
}

/* ---- bf16 ---- */

/* Numbers of bf16 as the form has them, NaN between rows. */
static uint16_t *matrix16(size_t rows, size_t width, size_t stride, uint64_t seed)
{
    uint16_t *out = malloc(rows * stride * sizeof *out + 2);
    assert_non_null(out);
    for (size_t i = 0; i < rows * stride; i++)
        out[i] = i % stride < width ? (uint16_t)(check_bits_of(check_unit(&seed)) >> 16) : 0x7fc0;
    return out;
}

static double wide(uint16_t x)
{
    return (double)check_float_of((uint32_t)x << 16);
}

static double wanted16(const embla_product_bf16 *p, size_t i, size_t j, double *size)
{
    double sum = 0;
    *size = 0;
    for (size_t k = 0; k < p->k; k++) {
        double a = wide(p->form == EMBLA_PRODUCT_AT_B ? p->a[k * p->a_stride + i]
                                                      : p->a[i * p->a_stride + k]);
        double b = wide(p->form == EMBLA_PRODUCT_A_BT ? p->b[j * p->b_stride + k]
                                                      : p->b[k * p->b_stride + j]);
        sum += a * b;
        *size += fabs(a * b);
    }
    return sum;
}

/* At once, or prepared and run twice. Returns false where the engine prepares no products. */
static bool compute16(const embla_product_bf16 *p, bool prepared, const float *before, size_t size)
{
    embla_prepared *it = NULL;
    memcpy(p->out, before, size);
    if (!prepared) {
        assert_ok(embla_engine_product_bf16(p));
        return true;
    }
    embla_status status = embla_engine_prepare_bf16(p, &it);
    if (status != EMBLA_OK) {
        assert_status(status, EMBLA_ERR_UNSUPPORTED);
        assert_null(it);
        return false;
    }
    assert_memory_equal(p->out, before, size); /* preparing computes nothing */
    for (int i = 0; i < 2; i++) {
        memcpy(p->out, before, size);
        assert_ok(embla_engine_run(it));
    }
    embla_prepared_free(it);
    return true;
}

static void check_bf16(embla_product_bf16 p, size_t gap, bool prepared)
{
    bool turned = p.form == EMBLA_PRODUCT_AT_B, b_turned = p.form == EMBLA_PRODUCT_A_BT;
    size_t a_rows = turned ? p.k : p.m, a_width = turned ? p.m : p.k;
    size_t b_rows = b_turned ? p.n : p.k, b_width = b_turned ? p.k : p.n;
    p.a_stride = a_width + gap;
    p.b_stride = b_width + 2 * gap;
    p.out_stride = p.n + gap;
    uint16_t *a = matrix16(a_rows, a_width, p.a_stride, p.m);
    uint16_t *b = matrix16(b_rows, b_width, p.b_stride, p.n);
    float *before = matrix(p.m, p.n, p.out_stride, 3);
    check_guarded g = check_guard(p.m * p.out_stride * sizeof(float), 0);
    p.a = a, p.b = b, p.out = (float *)(void *)g.bytes;
    size_t numbers = compute16(&p, prepared, before, g.size) ? p.m * p.out_stride : 0;
    check_guards(&g);
    for (size_t i = 0; i < numbers; i++) {
        double size;
        if (i % p.out_stride >= p.n) { /* between rows nothing was written */
            assert_true(isnan(p.out[i]));
            continue;
        }
        double sum = wanted16(&p, i / p.out_stride, i % p.out_stride, &size);
        if (p.add) sum += (double)before[i];
        assert_near(p.out[i], sum, 1e-6 * (size + 1));
    }
    check_guard_free(&g);
    free(a), free(b), free(before);
}

static void bf16_is_multiplied_in_float(void **state)
{
    static const size_t sizes[][4] = {
        {1, 1, 1, 0},      {3, 5, 7, 1},
        {40, 33, 1100, 0},                  /* more than two blocks deep */
        {300, 2, 20, 3},   {2, 600, 20, 3}, /* more than one block high, and wide */
        {1, 20, 9, 2},                      /* columns, with room between the numbers */
        {20, 1, 9, 2},     {259, 515, SLOW_BUILD ? 70 : 515, 2}};
    float *space = malloc(EMBLA_BF16_SPACE * sizeof *space);
    (void)state;
    assert_non_null(space);
    SKIP_WITHOUT_ENGINE();
    for (int native = -1; native < 2; native++) { /* widened, and by the engine if it can */
        embla_engine_use_bf16(native);
        if (native >= 0) assert_int_equal(embla_engine_has_bf16(), native);
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (int way = 0; way < 12; way++)
                check_bf16((embla_product_bf16){.m = sizes[s][0],
                                                .n = sizes[s][1],
                                                .k = sizes[s][2],
                                                .form = (embla_product_form)(way % 6 / 2),
                                                .add = way % 2 == 1,
                                                .space = s % 2 ? space : NULL},
                           sizes[s][3], way >= 6);
    }
    embla_engine_use_bf16(-1);
    free(space);
}

/* Sums of nothing: set, or left as they are. */
static void bf16_of_no_depth(void **state)
{
    uint16_t bits[2] = {0};
    float out[1] = {9};
    embla_prepared *prepared = NULL;
    embla_product_bf16 p = {.m = 1, .n = 1, .a = bits, .b = bits, .out = out, .out_stride = 1};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    p.a_stride = p.b_stride = 1;
    for (int form = EMBLA_PRODUCT_A_BT; form <= EMBLA_PRODUCT_AT_B; form++) {
        p.form = (embla_product_form)form;
        out[0] = 9;
        p.add = true;
        assert_ok(embla_engine_product_bf16(&p));
        assert_true(out[0] == 9);
        p.add = false;
        assert_ok(embla_engine_product_bf16(&p));
        assert_true(out[0] == 0);
    }
    assert_status(embla_engine_prepare_bf16(&p, &prepared), EMBLA_ERR_ARGUMENT);
}

static void bf16_without_memory_is_a_status(void **state)
{
    uint16_t a[64] = {0};
    float out[4] = {1, 1, 1, 1};
    embla_product_bf16 p = {.m = 2,
                            .n = 2,
                            .k = 32,
                            .a = a,
                            .b = a,
                            .a_stride = 32,
                            .b_stride = 32,
                            .out = out,
                            .out_stride = 2};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    size_t live = embla_mem_live();
    embla_mem_fail(1, false);
    embla_status status = embla_engine_product_bf16(&p);
    embla_mem_fail(0, false);
    /* a CPU that multiplies bf16 itself asks for none */
    if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
    assert_int_equal(embla_mem_live(), live);
    assert_ok(embla_engine_product_bf16(&p));
    assert_true(out[0] == 0 && out[3] == 0);
}

/* More shapes than a thread keeps, and each again later: from other addresses. */
static void *many_shapes(void *unused)
{
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t m = 1; m <= 20; m++)
            for (size_t n = 1; n <= 20; n++)
                check_bf16((embla_product_bf16){.m = m, .n = n, .k = 1 + (m + n) % 5}, turn, false);
    return unused;
}

static void bf16_of_more_shapes_than_are_kept(void **state)
{
    pthread_t thread;
    (void)state;
    SKIP_WITHOUT_ENGINE();
    embla_engine_use_bf16(1);
    (void)many_shapes(NULL);
    size_t live = embla_mem_live();
    assert_int_equal(pthread_create(&thread, NULL, many_shapes, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(embla_mem_live(), live); /* a thread that ends keeps nothing */
    embla_engine_use_bf16(-1);
}

/* ---- threads ---- */

enum { SIDE = 200, DEEP = 700, CALLERS = 6 };

typedef struct {
    const float *a, *b;
    float *out;
    embla_status status;
} caller;

static void *multiply(void *context)
{
    caller *c = context;
    embla_product p = {.m = SIDE,
                       .n = SIDE,
                       .k = DEEP,
                       .a = c->a,
                       .b = c->b,
                       .a_stride = DEEP,
                       .b_stride = DEEP,
                       .out = c->out,
                       .out_stride = SIDE};
    for (int i = 0; i < 3 && c->status == EMBLA_OK; i++) c->status = embla_engine_product(&p);
    return NULL;
}

static void many_threads_at_once_give_the_same_bits(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    float *a = matrix(SIDE, DEEP, DEEP, 5), *b = matrix(SIDE, DEEP, DEEP, 6);
    caller alone = {a, b, malloc(SIDE * SIDE * sizeof(float)), EMBLA_OK}, callers[CALLERS];
    pthread_t threads[CALLERS];
    multiply(&alone);
    assert_ok(alone.status);
    for (size_t i = 0; i < CALLERS; i++) {
        callers[i] = (caller){a, b, malloc(SIDE * SIDE * sizeof(float)), EMBLA_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, multiply, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(callers[i].status);
        assert_memory_equal(callers[i].out, alone.out, SIDE * SIDE * sizeof(float));
        free(callers[i].out);
    }
    free(alone.out), free(a), free(b);
}

static int threads_there_are(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    if (tasks) (void)closedir(tasks);
    return count;
}

/* Runs body in a child: 0, or where it failed. */
static void in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(240);
        _exit(body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int stays_on_one_thread(void)
{
    static float a[600 * 600], out[600 * 600];
    embla_product p = {.m = 600,
                       .n = 600,
                       .k = 600,
                       .a = a,
                       .b = a,
                       .a_stride = 600,
                       .b_stride = 600,
                       .out = out,
                       .out_stride = 600};
    if (no_engine()) return 0;
    int before = threads_there_are(); /* OpenBLAS starts some when it is loaded */
    if (embla_engine_product(&p) != EMBLA_OK) return 1;
    return threads_there_are() == before ? 0 : 2;
}

/* Before anything else has used threads in this process. */
static void a_product_starts_no_threads(void **state)
{
    (void)state;
    in_child(stays_on_one_thread);
}

/* The number that others have set is theirs. */
static int leaves_openmp_as_it_was(void)
{
    void *openmp =
        dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL); /* as in a program that uses it */
    void (*set)(int) = openmp ? (void (*)(int))dlsym(openmp, "omp_set_num_threads") : NULL;
    int (*get)(void) = openmp ? (int (*)(void))dlsym(openmp, "omp_get_max_threads") : NULL;
    if (no_engine() || !set || !get) return 0; /* this engine does not use OpenMP */
    set(3);
    int failed = stays_on_one_thread();
    return failed ? failed : get() == 3 ? 0 : 3;
}

static int leaves_blas_as_it_was(void)
{
    static const char *const names[] = {"libblas.so.3", "libopenblas.so.0"};
    int (*get[2])(void) = {NULL, NULL}, before[2] = {0, 0};
    double m[4] = {2, 1, 1, 2}, values[2];
    float a[4] = {1, 2, 3, 4}, out[4];
    for (int i = 0; i < 2; i++) {
        void *blas = dlopen(names[i], RTLD_NOW);
        if (blas) get[i] = (int (*)(void))dlsym(blas, "openblas_get_num_threads");
        if (get[i]) before[i] = get[i]();
    }
    embla_product p = {.m = 2, .n = 2, .k = 2, .a = a, .b = a, .out = out};
    p.a_stride = p.b_stride = p.out_stride = 2;
    (void)!embla_engine_eigen(m, 2, 0, values, NULL);
    (void)!embla_engine_product(&p);
    for (int i = 0; i < 2; i++)
        if (get[i] && get[i]() != before[i]) return 1 + i;
    return 0;
}

static void numbers_of_threads_are_left_as_they_were(void **state)
{
    (void)state;
    in_child(leaves_openmp_as_it_was);
    in_child(leaves_blas_as_it_was);
}

static int multiplies_after_a_fork(void)
{
    float a[64 * 64] = {0}, out[64 * 64];
    if (dense(EMBLA_PRODUCT_A_BT, a, a, 64, 64, 64, out) != EMBLA_OK) return 1;
    return out[0] == 0 ? 0 : 2;
}

static void a_child_multiplies_too(void **state)
{
    static float a[512 * 512], out[512 * 512];
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(dense(EMBLA_PRODUCT_A_BT, a, a, 512, 512, 512, out));
    in_child(multiplies_after_a_fork);
}

static void scribble(int signal)
{
    volatile char frame[4096];
    for (size_t i = 0; i < sizeof frame; i++) frame[i] = (char)signal;
}

/* oneDNN's code borrows the stack pointer: a handler that runs then writes over the heap. */
static int survives_signals(void)
{
    enum { WIDE = 100, TALL = 256 }; /* small enough to lie on the heap */
    const int turns = EMULATED ? 40 : 4000, apart = EMULATED ? 20000 : 500; /* microseconds */
    size_t bytes = WIDE * WIDE * sizeof(float);
    float *a = malloc(TALL * WIDE * sizeof *a), *first = malloc(bytes), *out = malloc(bytes);
    struct sigaction action = {.sa_handler = scribble, .sa_flags = SA_RESTART};
    struct itimerval each = {{0, apart}, {0, apart}}; /* of work */
    embla_product p = {.m = WIDE,
                       .n = WIDE,
                       .k = TALL,
                       .a = a,
                       .b = a,
                       .a_stride = WIDE,
                       .b_stride = WIDE,
                       .out = first,
                       .out_stride = WIDE,
                       .form = EMBLA_PRODUCT_AT_B};
    if (no_engine()) return 0;
    if (!a || !first || !out) return 1;
    for (size_t i = 0; i < TALL * WIDE; i++) a[i] = (float)(i % 13) - 6;
    if (embla_engine_product(&p) != EMBLA_OK) return 2;
    p.out = out;
    if (sigaction(SIGPROF, &action, NULL) != 0 || setitimer(ITIMER_PROF, &each, NULL) != 0)
        return 3;
    for (int i = 0; i < turns; i++) {
        void *around = malloc(100 + (size_t)i % 512); /* the heap is used, and found in order */
        if (embla_engine_product(&p) != EMBLA_OK) return 4;
        if (memcmp(out, first, bytes) != 0) return 5;
        free(around);
    }
    free(a);
    free(first);
    free(out);
    return 0;
}

static void a_signal_may_come_at_any_moment(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    in_child(survives_signals);
}

/* ---- eigenvalues ---- */

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* matrix * vector = value * vector, vectors of length 1 and at right angles, values in order,
 * their sum the trace and the sum of their squares that of all numbers. */
static void check_eigen(size_t n, size_t vectors, bool upper_only)
{
    uint64_t seed = n;
    double *m = malloc(n * n * sizeof *m), *copy = malloc(n * n * sizeof *m), trace = 0,
           squares = 0;
    double *values = malloc(n * sizeof *values), *out = malloc((vectors + 1) * n * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) m[i * n + j] = m[j * n + i] = (double)check_unit(&seed);
    memcpy(copy, m, n * n * sizeof *m);
    for (size_t i = 0; upper_only && i < n; i++) /* left of the diagonal nothing is looked at */
        for (size_t j = 0; j < i; j++) m[i * n + j] = NAN;
    for (size_t i = 0; i < n; i++) trace += copy[i * n + i];
    for (size_t i = 0; i < n * n; i++) squares += copy[i] * copy[i];
    assert_ok(embla_engine_eigen(m, n, vectors, values, out));
    for (size_t i = 0; i < n; i++) {
        trace -= values[i];
        squares -= values[i] * values[i];
        if (i > 0) assert_true(values[i] >= values[i - 1]);
    }
    assert_near(trace, 0, 1e-11 * (double)n);
    assert_near(squares, 0, 1e-11 * (double)(n * n));
    for (size_t v = 0; v < vectors; v++) {
        const double *x = out + v * n;
        double value = values[n - vectors + v];
        for (size_t i = 0; i < n; i++)
            assert_near(dot(copy + i * n, x, n), value * x[i], 1e-12 * (double)(n + 10));
        for (size_t w = 0; w <= v; w++)
            assert_near(dot(x, out + w * n, n), v == w ? 1 : 0, 1e-12 * (double)(n + 10));
    }
    free(m), free(copy), free(values), free(out);
}

static void eigenvalues_are_what_defines_them(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 8, 33, 100, 257};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t n = sizes[s];
        check_eigen(n, 0, false);
        check_eigen(n, 1, true);
        check_eigen(n, n < 2 ? n : 2, false);
        check_eigen(n, n < 33 ? n : 33, true);
    }
}

static void matrices_that_are_special(void **state)
{
    double zero[9] = {0}, values[3], vectors[9], one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double rank_one[9] = {1, 2, 3, 2, 4, 6, 3, 6, 9};
    (void)state;
    assert_ok(embla_engine_eigen(zero, 3, 3, values, vectors));
    for (int i = 0; i < 3; i++) assert_true(values[i] == 0);
    assert_ok(embla_engine_eigen(one, 3, 3, values, vectors));
    for (int i = 0; i < 3; i++) assert_near(values[i], 1, 1e-15);
    for (int i = 0; i < 3; i++) assert_near(dot(vectors + 3 * i, vectors + 3 * i, 3), 1, 1e-14);
    assert_ok(embla_engine_eigen(rank_one, 3, 1, values, vectors));
    assert_near(values[2], 14, 1e-13);
    assert_near(values[1], 0, 1e-13);
    assert_near(fabs(vectors[2]), 3 / sqrt(14), 1e-14);
    assert_ok(embla_engine_eigen(NULL, 0, 0, values, NULL));
}

static void what_has_no_eigenvalues_is_a_status(void **state)
{
    double m[4] = {1, NAN, NAN, 1}, values[2] = {7, 8}, vectors[4] = {9};
    (void)state;
    assert_status(embla_engine_eigen(m, 2, 3, values, vectors), EMBLA_ERR_ARGUMENT);
    assert_status(embla_engine_eigen(m, 32769, 0, values, vectors), EMBLA_ERR_ARGUMENT);
    assert_error_has("32769 x 32769");
    assert_status(embla_engine_eigen(m, 2, 1, values, vectors), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("2 x 2");
    assert_true(values[0] == 7 && values[1] == 8 && vectors[0] == 9);
    size_t live = embla_mem_live();
    embla_mem_fail(1, false);
    assert_status(embla_engine_eigen(m, 2, 1, values, vectors), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_int_equal(embla_mem_live(), live);
    assert_true(values[0] == 7);
}

/* Values do not depend on how many threads BLAS would have used: it is told one. */
static int eigen_bits(void)
{
    enum { N = 300 };
    static double m[N * N], values[N];
    uint64_t seed = 3, sum = 0;
    for (size_t i = 0; i < N; i++)
        for (size_t j = i; j < N; j++) m[i * N + j] = m[j * N + i] = (double)check_unit(&seed);
    if (embla_engine_eigen(m, N, 0, values, NULL) != EMBLA_OK) return 0;
    for (size_t i = 0; i < N; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = sum * 31 + bits;
    }
    return (int)(sum % 251);
}

static int eigen_bits_in(const char *threads)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("OPENBLAS_NUM_THREADS", threads, 1);
        _exit(eigen_bits());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void eigenvalues_do_not_depend_on_threads(void **state)
{
    (void)state;
    int one = eigen_bits_in("1");
    assert_int_equal(eigen_bits_in("2"), one);
    assert_int_equal(eigen_bits_in("4"), one);
}

/* ---- where a library is not there ---- */

static int says_what_to_install(void)
{
    float a[1] = {1}, out[1] = {7};
    double m[1] = {1}, value = 7;
    refused_name = "lib"; /* none of them */
    if (strcmp(embla_engine_name(), "none") != 0) return 1;
    if (!embla_engine_warning() || !strstr(embla_engine_warning(), "install")) return 2;
    if (dense(EMBLA_PRODUCT_A_BT, a, a, 1, 1, 1, out) != EMBLA_ERR_UNSUPPORTED) return 3;
    if (strcmp(embla_error(), embla_engine_warning()) != 0) return 4;
    if (!strstr(embla_error(), "Debian: lib")) return 5;
    if (embla_engine_eigen(m, 1, 0, &value, NULL) != EMBLA_OK) return 6; /* by plain loops */
    return out[0] == 7 && value == 1 ? 0 : 7;
}

static void a_missing_library_is_named(void **state)
{
    (void)state;
    in_child(says_what_to_install);
}

static void the_engine_has_a_name(void **state)
{
    (void)state;
    const char *name = embla_engine_name(), *warning = embla_engine_warning();
    assert_non_null(name);
    if (no_engine())
        assert_non_null(warning);
    else
        assert_true(strpbrk(name, "0123456789") != NULL || strcmp(name, "CBLAS") == 0);
    print_message("engine: %s%s%s\n", name, warning ? "; " : "", warning ? warning : "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* in children, before this process loads anything */
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_product_starts_no_threads),
        cmocka_unit_test(numbers_of_threads_are_left_as_they_were),
        cmocka_unit_test(eigenvalues_do_not_depend_on_threads),
        cmocka_unit_test(the_engine_has_a_name),
        cmocka_unit_test(a_product_is_what_it_says),
        cmocka_unit_test(sizes_of_zero_are_fine),
        cmocka_unit_test(strides_that_are_too_short_are_refused),
        cmocka_unit_test(a_product_has_three_forms),
        cmocka_unit_test(bf16_is_multiplied_in_float),
        cmocka_unit_test(bf16_of_no_depth),
        cmocka_unit_test(bf16_without_memory_is_a_status),
        cmocka_unit_test(bf16_of_more_shapes_than_are_kept),
        cmocka_unit_test(many_threads_at_once_give_the_same_bits),
        cmocka_unit_test(eigenvalues_are_what_defines_them),
        cmocka_unit_test(matrices_that_are_special),
        cmocka_unit_test(what_has_no_eigenvalues_is_a_status),
        cmocka_unit_test(a_child_multiplies_too),
        cmocka_unit_test(a_signal_may_come_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
