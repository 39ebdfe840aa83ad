/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation that the JSON library makes by itself fails, one after the other, once or
 * from then on, while a checkpoint is opened and while it is converted.
 *
 * Each failure happens in a child of its own, because a library that ends the process must
 * not end the test. Asked of each: the process lives; the status is EMBLA_ERR_MEMORY, or all
 * is well and what was written is what is always written; nothing is lost or left behind.
 */
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>

#include "convert_files.h"

static scratch folder;
static char source[SCRATCH_PATH], out[SCRATCH_PATH];
static size_t countdown, live;
static bool keep_failing;

static void *take(size_t bytes)
{
    if (countdown == 1) {
        if (!keep_failing) countdown = 0;
        return NULL;
    }
    if (countdown > 1) countdown--;
    live++;
    return malloc(bytes);
}

static void give(void *memory)
{
    if (memory) live--;
    free(memory);
}

static embla_status open_it(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    embla_checkpoint_free(checkpoint);
    return status;
}

static embla_status convert_it(void)
{
    const embla_convert_options options = {.overwrite = true, .dtype = EMBLA_BF16};
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    embla_status status = embla_checkpoint_open(source, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_convert(checkpoint, out, &options, &account);
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    return status;
}

/* What is wrong after a failure, or NOTHING. */
enum { NOTHING, NO_SENTENCE, LOST, LEFT_BEHIND, WRONG_OUTPUT, WRONG_STATUS, ENDED, KINDS };
static const char *const kinds[KINDS] = {
    "nothing",      "no sentence",    "memory or a file is lost", "a temporary",
    "wrong output", "another status", "the process was ended"};

static int in_child(embla_status (*work)(void), size_t n, bool forever, const void *wanted,
                    size_t wanted_bytes)
{
    size_t files = embla_io_live(), memory = embla_mem_live();
    countdown = n;
    keep_failing = forever;
    embla_status status = work();
    countdown = 0;
    if (status != EMBLA_OK && embla_error()[0] == '\0') return NO_SENTENCE;
    if (embla_io_live() != files || embla_mem_live() != memory || live != 0) return LOST;
    if (scratch_count(&folder, ".tmp.") != 0) return LEFT_BEHIND;
    if (wanted && !scratch_holds(out, status == EMBLA_OK ? wanted : "precious",
                                 status == EMBLA_OK ? wanted_bytes : 8))
        return WRONG_OUTPUT;
    return status == EMBLA_OK || status == EMBLA_ERR_MEMORY ? NOTHING : WRONG_STATUS;
}

static void fail_all(embla_status (*work)(void))
{
    size_t found[KINDS] = {0}, size = 0;
    unsigned char *wanted = NULL;
    countdown = SIZE_MAX;
    assert_ok(work());
    size_t all = SIZE_MAX - countdown;
    countdown = 0;
    if (work == convert_it) wanted = scratch_read(out, &size);
    for (size_t i = 0; i < 2 * all; i++) {
        int status = 0;
        if (wanted) scratch_write(out, "precious", 8);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            if (!freopen("/dev/null", "w", stderr)) _exit(ENDED);
            _exit(in_child(work, i / 2 + 1, i % 2 == 1, wanted, size));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        int kind = WIFEXITED(status) ? WEXITSTATUS(status) : ENDED;
        assert_true(kind < KINDS);
        found[kind]++;
    }
    free(wanted);
    for (int k = 0; k < KINDS; k++)
        if (found[k] > 0) print_message("%zu of %zu: %s\n", found[k], 2 * all, kinds[k]);
    assert_int_equal(found[NOTHING], 2 * all);
}

static int make_files(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":32,"
                                 "\"architectures\":[\"GPT2LMHeadModel\"]}";
    static sample_numbers numbers;
    (void)state;
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 0);
    scratch_new(&folder);
    sample_model(scratch_path(&folder, "m.safetensors"), &numbers);
    snprintf(source, sizeof source, "%s", folder.path);
    scratch_write(scratch_path(&folder, "config.json"), config, sizeof config - 1);
    snprintf(out, sizeof out, "%s", scratch_path(&folder, "out.safetensors"));
    json_set_alloc_funcs(take, give);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free);
    scratch_free(&folder);
    return 0;
}

static void opening_survives_a_json_library_without_memory(void **state)
{
    (void)state;
    fail_all(open_it);
}

static void converting_survives_a_json_library_without_memory(void **state)
{
    (void)state;
    fail_all(convert_it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives_a_json_library_without_memory),
        cmocka_unit_test(converting_survives_a_json_library_without_memory),
    };
    return cmocka_run_group_tests_name("json_memory", tests, make_files, remove_files);
}
