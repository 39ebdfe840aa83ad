/* SPDX-License-Identifier: Apache-2.0 */
/* Giant tables in checkpoints: by the names that models use, by a name, by a name with '*'; their
 * scales; what is refused and how that is said. And files that are cut, replaced or changed while
 * a store is open: a status, never a signal. What could end the process is tried in a child.
 */
#include "check.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/half.h"
#include "files/io.h"
#include "gguf_bytes.h"
#include "scratch.h"
#include "store/store.h"

/* ---- checkpoints, byte by byte ---- */

typedef struct {
    char header[32768];
    size_t used;
    unsigned char data[1 << 18];
    size_t size;
} st;

static st file; /* the one that is being made */

/* Rows are not what counts here: bytes follow from the name and the place. */
static unsigned char byte_of(const char *name, size_t i)
{
    uint64_t seed = i;
    for (; *name; name++) seed = seed * 31 + (unsigned char)*name;
    return (unsigned char)check_next(&seed);
}

static void tensor_of(const char *name, const char *dtype, const char *shape, const void *bytes,
                      size_t count)
{
    size_t from = file.size;
    assert_true(file.size + count <= sizeof file.data);
    if (bytes)
        memcpy(file.data + file.size, bytes, count);
    else
        for (size_t i = 0; i < count; i++) file.data[file.size + i] = byte_of(name, i);
    file.size += count;
    file.used +=
        (size_t)snprintf(file.header + file.used, sizeof file.header - file.used,
                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                         file.used ? "," : "{", name, dtype, shape, from, file.size);
    assert_true(file.used < sizeof file.header - 16);
}

static void tensor(const char *name, const char *dtype, const char *shape, size_t count)
{
    tensor_of(name, dtype, shape, NULL, count);
}

static void number(const char *name, const char *dtype, const char *shape, float value)
{
    uint32_t bits = check_bits_of(value);
    uint16_t half = strcmp(dtype, "BF16") == 0 ? (uint16_t)(bits >> 16) : embla_f16_from_f32(value);
    bool whole = strcmp(dtype, "F32") == 0;
    tensor_of(name, dtype, shape, whole ? (void *)&bits : (void *)&half, whole ? 4 : 2);
}

static void write_file(const char *path)
{
    uint64_t length = file.used + 1;
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    file.header[file.used] = '}';
    assert_int_equal(fwrite(&length, 1, 8, out), 8);
    assert_int_equal(fwrite(file.header, 1, file.used + 1, out), file.used + 1);
    assert_int_equal(fwrite(file.data, 1, file.size, out), file.size);
    assert_int_equal(fclose(out), 0);
    file.used = file.size = 0;
}

static scratch folder;

static embla_checkpoint *open_it(const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    assert_ok(embla_checkpoint_open(path, NULL, &checkpoint));
    return checkpoint;
}

/* Writes what has been put together and opens it. */
static embla_checkpoint *made(void)
{
    scratch_new(&folder);
    write_file(scratch_path(&folder, "model.safetensors"));
    return open_it(folder.path);
}

static void unmade(embla_checkpoint *checkpoint)
{
    embla_checkpoint_free(checkpoint);
    scratch_free(&folder);
}

/* ---- what is expected ---- */

/* Row `row` of all is numbers of tensor `codes` from at on, then scales of another. */
static void expect_row(const embla_store *store, int64_t row, const char *codes, size_t at,
                       const char *scales, size_t scale_at)
{
    unsigned char out[1024];
    embla_row_part part;
    assert_ok(embla_row_part_of(&store->row, 0, 0, &part));
    assert_true(part.bytes <= sizeof out);
    const embla_row_source source = embla_store_source(store);
    const embla_read_job job = {.rows = &row,
                                .count = 1,
                                .known = 1,
                                .part = &part,
                                .out = (char *)out,
                                .out_stride = part.bytes};
    assert_ok(embla_source_read(&source, &job));
    for (size_t i = 0; i < part.code_bytes; i++) assert_int_equal(out[i], byte_of(codes, at + i));
    for (size_t i = 0; i < part.scale_bytes; i++)
        assert_int_equal(out[part.code_bytes + i], byte_of(scales, scale_at + i));
}

static const embla_placement all_places[] = {EMBLA_PLACEMENT_RAM, EMBLA_PLACEMENT_MAPPED,
                                             EMBLA_PLACEMENT_READ};

/* Opens by name (NULL: without one) in place number i of three. */
static embla_store *opened_as(const embla_checkpoint *checkpoint, const char *name, int32_t layer,
                              size_t i)
{
    embla_store *store = NULL;
    embla_store_options options = {.placement = all_places[i]};
    assert_ok(embla_store_open(checkpoint, name, layer, &options, &store));
    return store;
}

static void expect_format(const embla_store *store, int64_t rows, size_t dim, embla_dtype dtype,
                          embla_scales scales, float scale)
{
    embla_store_info info;
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.rows, rows);
    assert_int_equal(info.format.dim, dim);
    assert_int_equal(info.format.dtype, dtype);
    assert_int_equal(info.format.scales, scales);
    assert_int_equal(check_bits_of(info.format.scale), check_bits_of(scale));
}

/* Refused, said so, and nothing is kept. The checkpoint is closed. */
static void refused(const char *name, int32_t layer, embla_status status, const char *said)
{
    embla_checkpoint *checkpoint = made();
    embla_store *store = NULL;
    size_t live = embla_mem_live(), files = embla_io_live();
    assert_status(embla_store_open(checkpoint, name, layer, NULL, &store), status);
    assert_error_has(said);
    assert_null(store);
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
    unmade(checkpoint);
}

/* ---- Qwen ---- */

#define QWEN "model.language_model.layers.1.ple.ple_embedding.ngram_embedding."

static const char *shard(char *out, size_t size, const char *form, unsigned i)
{
    (void)snprintf(out, size, form, i);
    return out;
}

/* 12 parts of 5 rows, out of order, after other tensors, in one file. */
static void add_shards(const char *form, const char *dtype, unsigned parts)
{
    char name[256];
    tensor("model.embed_tokens.weight", "BF16", "[4,8]", 64);
    for (unsigned k = 0; k < parts; k++)
        tensor(shard(name, sizeof name, form, (k * 5 + 3) % parts), dtype, "[5,160]", 5 * 160);
}

static void expect_shards(embla_checkpoint *checkpoint, const char *pattern, const char *form,
                          float scale)
{
    for (size_t i = 0; i < COUNT_OF(all_places); i++) {
        embla_store *store = opened_as(checkpoint, pattern, -1, i);
        expect_format(store, 60, 160, EMBLA_F8_E4M3, EMBLA_SCALES_NONE, scale);
        for (int64_t row = 0; row < 60; row++) {
            char name[256];
            expect_row(store, row, shard(name, sizeof name, form, (unsigned)(row / 5)),
                       (size_t)(row % 5) * 160, NULL, 0);
        }
        assert_int_equal(store->extent_count, 12);
        embla_store_free(store);
    }
}

static void the_shards_of_qwen_are_one_table(void **state)
{
    static const char *const forms[] = {QWEN "shard_%u.weight", QWEN "shards.%u.weight",
                                        QWEN "shard_%03u.weight"};
    static const char *const dtypes[] = {"BF16", "F32", "F16"};
    (void)state;
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        add_shards(forms[f], "F8_E4M3", 12);
        number(QWEN "weight_scale", dtypes[f], f == 0 ? "[]" : f == 1 ? "[1]" : "[1,1]", 0.25f);
        embla_checkpoint *checkpoint = made();
        expect_shards(checkpoint, NULL, forms[f], 0.25f);
        if (f == 0) expect_shards(checkpoint, QWEN "shard_*.weight", forms[f], 0.25f);
        embla_store *store = NULL;
        assert_ok(embla_store_open(checkpoint, NULL, 1, NULL, &store)); /* the layer it is of */
        embla_store_free(store);
        assert_status(embla_store_open(checkpoint, NULL, 2, NULL, &store), EMBLA_ERR_NOT_FOUND);
        assert_error_has("layer 2 has no giant table; tables found: '" QWEN "shard");
        assert_error_has("(60 rows)");
        unmade(checkpoint);
    }
}

static void without_a_scale_it_is_one(void **state)
{
    (void)state;
    add_shards(QWEN "shard_%u.weight", "F8_E4M3", 12);
    embla_checkpoint *checkpoint = made();
    expect_shards(checkpoint, NULL, QWEN "shard_%u.weight", 1.0f);
    unmade(checkpoint);
}

static void a_table_in_one_part_is_found_too(void **state)
{
    (void)state;
    tensor(QWEN "weight", "F8_E4M3", "[7,160]", 7 * 160);
    number(QWEN "weight_scale_inv", "F32", "[]", 0.125f);
    number(QWEN "weight_scale_2", "F16", "[1]", 0.5f); /* both count */
    embla_checkpoint *checkpoint = made();
    embla_store *store = opened_as(checkpoint, NULL, -1, 0);
    expect_format(store, 7, 160, EMBLA_F8_E4M3, EMBLA_SCALES_NONE, 0.0625f);
    expect_row(store, 6, QWEN "weight", 6 * 160, NULL, 0);
    embla_store_free(store);
    unmade(checkpoint);
}

/* The shards lie in several files, named by an index. */
static void shards_in_several_files_are_one_table(void **state)
{
    char name[256], path[64], map[16384] = "";
    size_t used = 0;
    (void)state;
    scratch_new(&folder);
    for (unsigned f = 0; f < 4; f++) {
        (void)snprintf(path, sizeof path, "model-0000%u-of-00004.safetensors", f + 1);
        for (unsigned i = f; i < 12; i += 4) {
            tensor(shard(name, sizeof name, QWEN "shard_%u.weight", i), "F8_E4M3", "[5,160]", 800);
            used += (size_t)snprintf(map + used, sizeof map - used, "%s\"%s\":\"%s\"",
                                     used ? "," : "", name, path);
        }
        if (f == 2) {
            number(QWEN "weight_scale", "BF16", "[]", 0.5f);
            used += (size_t)snprintf(map + used, sizeof map - used, ",\"%s\":\"%s\"",
                                     QWEN "weight_scale", path);
        }
        write_file(scratch_path(&folder, path));
    }
    FILE *index = fopen(scratch_path(&folder, "model.safetensors.index.json"), "wb");
    assert_non_null(index);
    assert_true(fprintf(index, "{\"metadata\":{},\"weight_map\":{%s}}", map) > 0);
    assert_int_equal(fclose(index), 0);
    embla_checkpoint *checkpoint = open_it(folder.folder);
    embla_store *store = opened_as(checkpoint, NULL, -1, 1);
    assert_int_equal(store->source_count, 4);
    embla_checkpoint_free(checkpoint); /* the store keeps its files by itself */
    for (int64_t row = 0; row < 60; row++)
        expect_row(store, row, shard(name, sizeof name, QWEN "shard_%u.weight", (unsigned)row / 5),
                   (size_t)(row % 5) * 160, NULL, 0);
    embla_verify_report v;
    assert_ok(embla_store_verify(store, 0, 0, &v));
    assert_int_equal(v.different, 0);
    embla_store_free(store);
    scratch_free(&folder);
}

static void parts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_1.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_3.weight", "F8_E4M3", "[5,160]", 800);
    refused(NULL, -1, EMBLA_ERR_FORMAT,
            "part 2 of '" QWEN
            "shard_*.weight' is missing; there are 3 parts, and the highest number is 3");
    tensor(QWEN "shard_1.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_999999999.weight", "F8_E4M3", "[5,160]", 800);
    refused(NULL, -1, EMBLA_ERR_FORMAT, "part 0 of '");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_1.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_01.weight", "F8_E4M3", "[5,160]", 800);
    refused(NULL, -1, EMBLA_ERR_FORMAT, "occurs twice, as '" QWEN "shard_");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_1.weight", "F8_E4M3", "[5,128]", 640);
    refused(NULL, -1, EMBLA_ERR_SHAPE, "part 1 ('" QWEN "shard_1.weight') has rows of 128 f8_e4m3");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_1.weight", "BF16", "[5,160]", 1600);
    refused(NULL, -1, EMBLA_ERR_SHAPE,
            "has rows of 160 bf16 with scales 0, but part 0 has rows of 160 f8_e4m3");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[5,160]", 800);
    tensor(QWEN "shard_1.weight", "F8_E4M3", "[5,160]", 800);
    number(QWEN "shard_0.weight_scale", "F32", "[]", 0.5f);
    number(QWEN "shard_1.weight_scale", "F32", "[]", 0.25f);
    refused(NULL, -1, EMBLA_ERR_UNSUPPORTED, "has the scale 0.25, but part 0 has 0.5");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[0,160]", 0);
    refused(NULL, -1, EMBLA_ERR_SHAPE, "0 x 160");
    tensor(QWEN "shard_0.weight", "F8_E4M3", "[2,5,160]", 1600);
    refused(NULL, -1, EMBLA_ERR_SHAPE, "3 dimensions");
}

/* ---- LongCat ---- */

static void the_tables_of_longcat_are_one(void **state)
{
    char name[256], shape[64];
    size_t rows = 0;
    (void)state;
    tensor("model.ngram_embeddings.post_projs.0.weight", "BF16", "[4,8]", 64);
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(shape, sizeof shape, "[%u,8]", 11 + 2 * i);
        tensor(shard(name, sizeof name, "model.ngram_embeddings.embedders.%u.weight", i), "BF16",
               shape, (11 + 2 * i) * 16);
        rows += 11 + 2 * i;
    }
    embla_checkpoint *checkpoint = made();
    for (size_t p = 0; p < COUNT_OF(all_places); p++) {
        embla_store *store = opened_as(checkpoint, NULL, -1, p);
        expect_format(store, (int64_t)rows, 8, EMBLA_BF16, EMBLA_SCALES_NONE, 1.0f);
        int64_t row = 0;
        for (unsigned i = 0; i < 12; i++)
            for (unsigned r = 0; r < 11 + 2 * i; r++)
                expect_row(
                    store, row++,
                    shard(name, sizeof name, "model.ngram_embeddings.embedders.%u.weight", i),
                    (size_t)r * 16, NULL, 0);
        embla_store_free(store);
    }
    unmade(checkpoint);
}

/* ---- DeepSeek ---- */

#define ENGRAM(layer) "layers." #layer ".engram.embed."

static void add_engram(void)
{
    tensor("layers.1.engram.wkv.weight", "F8_E4M3", "[64,64]", 4096); /* blocks of 32 x 32 */
    tensor("layers.1.engram.wkv.scale", "F8_E8M0", "[2,2]", 4);
    tensor("layers.1.engram.q_norm.weight", "BF16", "[64]", 128);
    tensor(ENGRAM(14) "weight", "F8_E4M3", "[9,256]", 9 * 256);
    tensor(ENGRAM(14) "scale", "F8_E8M0", "[9,8]", 72);
    tensor(ENGRAM(1) "scale", "U8", "[6,8]", 48);
    tensor(ENGRAM(1) "weight", "F8_E4M3", "[6,256]", 6 * 256);
}

static void layers_of_deepseek_have_a_table_each(void **state)
{
    embla_store *store = NULL;
    (void)state;
    add_engram();
    embla_checkpoint *checkpoint = made();
    for (size_t p = 0; p < COUNT_OF(all_places); p++)
        for (int32_t layer = -1; layer <= 14; layer += layer < 0 ? 2 : 13) {
            bool second = layer == 14;
            store = opened_as(checkpoint, NULL, layer, p);
            expect_format(store, second ? 9 : 6, 256, EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32, 1.0f);
            for (int64_t row = 0; row < store->rows; row++)
                expect_row(store, row, second ? ENGRAM(14) "weight" : ENGRAM(1) "weight",
                           (size_t)row * 256, second ? ENGRAM(14) "scale" : ENGRAM(1) "scale",
                           (size_t)row * 8);
            embla_store_free(store);
        }
    store = NULL;
    assert_status(embla_store_open(checkpoint, NULL, 3, NULL, &store), EMBLA_ERR_NOT_FOUND);
    assert_error_has("layer 3 has no giant table; tables found: '" ENGRAM(
        14) "weight' (9 rows), '" ENGRAM(1) "weight' (6 rows)");
    assert_status(embla_store_open(checkpoint, NULL, -2, NULL, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_open(checkpoint, "layers.1.engram.wkv.weight", -1, NULL, &store),
                  EMBLA_ERR_SHAPE);
    assert_error_has("'layers.1.engram.wkv.scale' is F8_E8M0 (2, 2); this is not a valid shape for "
                     "the scales of "
                     "'layers.1.engram.wkv.weight', which is F8_E4M3 (64, 64)");
    assert_null(store);
    unmade(checkpoint);
}

static void groups_are_told_by_the_shape_of_the_scales(void **state)
{
    static const struct {
        const char *codes, *shape, *scales, *scale_shape;
        size_t bytes, scale_bytes, dim;
        embla_dtype dtype;
        embla_scales kind;
    } cases[] = {
        {"F8_E4M3", "[3,256]", "F8_E8M0", "[3,2]", 768, 6, 256, EMBLA_F8_E4M3,
         EMBLA_SCALES_UE8M0_128},
        {"F8_E4M3", "[3,160]", "U8", "[3,2]", 480, 6, 160, EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_128},
        {"F8_E4M3", "[3,160]", "U8", "[3,5]", 480, 15, 160, EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32},
        {"F8_E4M3", "[3,40]", "F8_E8M0", "[3,2]", 120, 6, 40, EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32},
        {"F8_E4M3", "[1,32]", "F8_E8M0", "[1,1]", 32, 1, 32, EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32},
        {"U8", "[3,80]", "F8_E4M3", "[3,10]", 240, 30, 160, EMBLA_F4_E2M1, EMBLA_SCALES_E4M3_16},
        {"U8", "[3,80]", "F8_E8M0", "[3,5]", 240, 15, 160, EMBLA_F4_E2M1, EMBLA_SCALES_UE8M0_32},
    };
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        tensor("a.weight", cases[c].codes, cases[c].shape, cases[c].bytes);
        tensor("a.weight_scale", cases[c].scales, cases[c].scale_shape, cases[c].scale_bytes);
        if (c == 5) number("a.weight_scale_2", "F32", "[]", 0.0625f);
        embla_checkpoint *checkpoint = made();
        for (size_t p = 0; p < COUNT_OF(all_places); p++) {
            embla_store *store = opened_as(checkpoint, "a.weight", -1, p);
            size_t bytes = cases[c].bytes / (size_t)store->rows;
            size_t scale_bytes = cases[c].scale_bytes / (size_t)store->rows;
            expect_format(store, c == 4 ? 1 : 3, cases[c].dim, cases[c].dtype, cases[c].kind,
                          c == 5 ? 0.0625f : 1.0f);
            for (size_t row = 0; row < (size_t)store->rows; row++)
                expect_row(store, (int64_t)row, "a.weight", row * bytes, "a.weight_scale",
                           row * scale_bytes);
            embla_store_free(store);
        }
        unmade(checkpoint);
    }
}

static void scales_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *type, *shape, *said;
        size_t bytes;
    } bad[] = {
        {"F8_E8M0", "[3,4]",
         "is F8_E8M0 (3, 4); this is not a valid shape for the scales of 'a.weight', which is "
         "F8_E4M3 (3, 256)",
         12},
        {"F8_E8M0", "[2,8]", "(2, 8)", 16},
        {"F8_E8M0", "[24]", "(24)", 24},
        {"F32", "[3,1]", "is F32 (3, 1)", 12},
        {"F32", "[3,8]", "is F32 (3, 8)", 96},
        {"F32", "[2]", "is F32 (2)", 8},
        {"F64", "[1]", "is F64 (1)", 8},
        {"I8", "[3,8]", "is I8 (3, 8)", 24},
        {"F32", "[0]", "is F32 (0)", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        tensor("a.weight", "F8_E4M3", "[3,256]", 768);
        tensor("a.scale", bad[i].type, bad[i].shape, bad[i].bytes);
        refused("a.weight", -1, EMBLA_ERR_SHAPE, bad[i].said);
    }
    /* e4m3 scales do not go with f8, nor any with bf16. */
    tensor("a.weight", "F8_E4M3", "[3,256]", 768);
    tensor("a.scale", "F8_E4M3", "[3,16]", 48);
    refused("a.weight", -1, EMBLA_ERR_ARGUMENT, "scales");
    tensor("a.weight", "BF16", "[3,256]", 1536);
    tensor("a.scale", "F8_E8M0", "[3,8]", 24);
    refused("a.weight", -1, EMBLA_ERR_ARGUMENT, "scales");
    tensor("a.weight", "F8_E4M3", "[3,256]", 768);
    number("a.scale", "F32", "[]", 0.0f);
    refused("a.weight", -1, EMBLA_ERR_FORMAT, "the scale 'a.scale' is 0");
    tensor("a.weight", "F8_E4M3", "[3,256]", 768);
    number("a.scale", "F32", "[]", check_float_of(0x7fc00000u));
    refused("a.weight", -1, EMBLA_ERR_FORMAT, "the scale 'a.scale' is nan");
    tensor("a.weight", "F8_E4M3", "[3,256]", 768);
    number("a.scale", "F32", "[]", check_float_of(0x7f800000u));
    refused("a.weight", -1, EMBLA_ERR_ARGUMENT, "inf");
    tensor("a.weight", "U8", "[3,80]", 240);
    refused("a.weight", -1, EMBLA_ERR_UNSUPPORTED, "has type U8, which cannot be a table");
    tensor("a.weight", "U8", "[3,80]", 240);
    tensor("a.weight_scale", "F8_E4M3", "[3,10]", 30);
    tensor("a.weight_scale_2", "F32", "[2]", 8);
    refused("a.weight", -1, EMBLA_ERR_SHAPE, "'a.weight_scale_2' is F32 (2), not one number");
}

/* ---- Gemma, GGUF ---- */

static void the_per_layer_table_of_gemma_serves_all_layers(void **state)
{
    (void)state;
    tensor("model.embed_tokens.weight", "BF16", "[4,8]", 64);
    tensor("model.language_model.embed_tokens_per_layer.weight", "BF16", "[4,64]", 512);
    embla_checkpoint *checkpoint = made();
    for (int32_t layer = -1; layer < 3; layer++) {
        embla_store *store = opened_as(checkpoint, NULL, layer, 0);
        expect_format(store, 4, 64, EMBLA_BF16, EMBLA_SCALES_NONE, 1.0f);
        expect_row(store, 3, "model.language_model.embed_tokens_per_layer.weight", 384, NULL, 0);
        embla_store_free(store);
    }
    embla_store *store = opened_as(checkpoint, "model.embed_tokens.weight", -1, 1);
    expect_format(store, 4, 8, EMBLA_BF16, EMBLA_SCALES_NONE, 1.0f);
    embla_store_free(store);
    unmade(checkpoint);
}

/* Two tensors of a GGUF; the second of 3 rows of 256 numbers of q4_K, or of 160 of q8_0. */
static embla_checkpoint *made_gguf(const char *name, uint32_t type, uint64_t dim, size_t bytes)
{
    gguf_bytes g = {0};
    scratch_new(&folder);
    add_head(&g, 3, 2, 1);
    add_key_text(&g, "general.architecture", "qwen4exp");
    add_table(&g, "token_embd.weight", 2, 4, 0);
    add_tensor(&g, name, 2, (uint64_t[]){dim, 3}, type, 32);
    add_padding(&g, 32);
    add_fill(&g, 32);
    for (size_t i = 0; i < 3 * bytes; i++) add_number(&g, byte_of(name, i), 1);
    add_padding(&g, 32);
    scratch_write(scratch_path(&folder, "m.gguf"), g.bytes, g.used);
    free(g.bytes);
    return open_it(folder.path);
}

static void tables_of_gguf_are_found(void **state)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t dim;
        size_t bytes;
        embla_dtype dtype;
    } cases[] = {{"per_layer_token_embd.weight", 8, 160, 170, EMBLA_Q8_0},
                 {"blk.1.engram_embd.weight", 12, 256, 144, EMBLA_Q4_K},
                 {"blk.1.engram_embd.weight", 11, 256, 110, EMBLA_Q3_K},
                 {"per_layer_token_embd.weight", 20, 160, 90, EMBLA_IQ4_NL}};
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        embla_checkpoint *checkpoint =
            made_gguf(cases[c].name, cases[c].type, cases[c].dim, cases[c].bytes);
        for (size_t p = 0; p < COUNT_OF(all_places); p++) {
            embla_store *store = opened_as(checkpoint, NULL, -1, p);
            expect_format(store, 3, cases[c].dim, cases[c].dtype, EMBLA_SCALES_NONE, 1.0f);
            for (size_t row = 0; row < 3; row++)
                expect_row(store, (int64_t)row, cases[c].name, row * cases[c].bytes, NULL, 0);
            embla_store_free(store);
        }
        unmade(checkpoint);
    }
    embla_checkpoint *checkpoint = made_gguf("blk.1.engram_embd.weight", 10, 256, 84); /* q2_K */
    embla_store *store = NULL;
    assert_status(embla_store_open(checkpoint, NULL, 1, NULL, &store), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("has type Q2_K, which cannot be a table");
    assert_null(store);
    unmade(checkpoint);
}

/* ---- names ---- */

static void what_cannot_be_found_is_said(void **state)
{
    (void)state;
    tensor("a.weight", "F32", "[2,2]", 16);
    refused(NULL, -1, EMBLA_ERR_NOT_FOUND,
            "none of its 1 tensors is recognised as a giant table; name the tensor");
    tensor("a.weight", "F32", "[2,2]", 16);
    refused("b.weight", -1, EMBLA_ERR_NOT_FOUND, "has no tensor 'b.weight'");
    tensor("a.weight", "F32", "[2,2]", 16);
    refused("a*b*c", -1, EMBLA_ERR_ARGUMENT, "one '*' stands for the number of a part");
    tensor("a.weight", "F32", "[2,2]", 16);
    refused("a*.weight", -1, EMBLA_ERR_NOT_FOUND, "no tensor is called 'a*.weight'");
    tensor(QWEN "shard_0.weight", "F32", "[2,2]", 16);
    tensor(QWEN "weight", "F32", "[2,2]", 16);
    refused(NULL, -1, EMBLA_ERR_NOT_FOUND, "2 tensors could be the giant table: '" QWEN);
    tensor(QWEN "shard_x.weight", "F32", "[2,2]", 16);
    tensor(QWEN "shard_1234567890.weight", "F32", "[2,2]", 16);
    tensor(QWEN "shard_0.weight_scale", "F32", "[]", 4);
    refused(NULL, -1, EMBLA_ERR_NOT_FOUND, "none of its 3 tensors");
    tensor("t.weight", "I32", "[2,2]", 16);
    refused("t.weight", -1, EMBLA_ERR_UNSUPPORTED, "has type I32");
    tensor("a.weight", "F32", "[2,2]", 16);
    embla_checkpoint *checkpoint = made();
    embla_store *store = NULL;
    assert_status(embla_store_open(NULL, NULL, -1, NULL, &store), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_open(checkpoint, "a.weight", -1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    unmade(checkpoint);
}

static void a_tensor_named_after_the_path_is_the_table(void **state)
{
    char path[SCRATCH_PATH + 32];
    (void)state;
    tensor("a.weight", "F32", "[2,4]", 32);
    tensor("b.weight", "F32", "[3,4]", 48);
    tensor("*", "F32", "[1,4]", 16); /* a name like any other */
    embla_checkpoint *checkpoint = made();
    embla_store *store = opened_as(checkpoint, "*", -1, 0);
    expect_format(store, 1, 4, EMBLA_F32, EMBLA_SCALES_NONE, 1.0f);
    embla_store_free(store);
    embla_checkpoint_free(checkpoint);
    (void)snprintf(path, sizeof path, "%s::b.weight", folder.path);
    checkpoint = open_it(path);
    store = opened_as(checkpoint, NULL, -1, 0);
    expect_format(store, 3, 4, EMBLA_F32, EMBLA_SCALES_NONE, 1.0f);
    embla_store_free(store);
    unmade(checkpoint);
}

static void rows_that_are_text_are_left_to_tables(void **state)
{
    embla_store *store = NULL;
    size_t count;
    (void)state;
    scratch_new(&folder);
    scratch_write(scratch_path(&folder, "v.txt"), "a 1 2\nb 3 4\n", 12);
    embla_checkpoint *checkpoint = open_it(folder.path);
    const embla_tensor *first = embla_checkpoint_tensors(checkpoint, &count);
    assert_status(embla_store_open(checkpoint, first->name, -1, NULL, &store),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("embla_table_open");
    assert_null(store);
    unmade(checkpoint);
}

/* ---- files that change ---- */

enum { ROWS = 60000 }; /* 9.6 MB: more pages than are touched before it is cut */

static char rows_path[SCRATCH_PATH], other_path[SCRATCH_PATH];
static const embla_row_format rows_format = {.dim = 160, .dtype = EMBLA_F8_E4M3};

static embla_status open_rows(embla_placement place, embla_store **out)
{
    embla_store_options options = {.placement = place};
    embla_extent extent = {.file = rows_path, .offset = 100, .rows = ROWS};
    return embla_store_open_extents(&rows_format, &extent, 1, &options, out);
}

/* A row, by the placement alone. */
static embla_status fetch_row(const embla_store *store, int64_t row, unsigned char *out)
{
    embla_row_part part;
    EMBLA_TRY(embla_row_part_of(&store->row, 0, 0, &part));
    const embla_row_source source = embla_store_source(store);
    const embla_read_job job = {.rows = &row,
                                .count = 1,
                                .known = 1,
                                .part = &part,
                                .out = (char *)out,
                                .out_stride = part.bytes};
    return embla_source_read(&source, &job);
}

static embla_status check(const embla_store *store)
{
    const embla_row_source source = embla_store_source(store);
    return embla_source_check(&source);
}

static void write_rows(const char *path, unsigned char mark)
{
    unsigned char *bytes = malloc(100 + ROWS * 160);
    assert_non_null(bytes);
    memset(bytes, mark, 100 + ROWS * 160);
    scratch_write(path, bytes, 100 + ROWS * 160);
    free(bytes);
}

static void rows_start(void)
{
    scratch_new(&folder);
    (void)snprintf(rows_path, sizeof rows_path, "%s", scratch_path(&folder, "rows"));
    (void)snprintf(other_path, sizeof other_path, "%s", scratch_path(&folder, "other"));
    write_rows(rows_path, 7);
}

/* In a child, which ends with the number of the first thing that is wrong. */
static int child(int (*body)(embla_placement place), embla_placement place)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(body(place));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status; /* 0: it ended by itself, and all was right */
}

#define WRONG_UNLESS(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) return __LINE__ % 251 + 1;                                               \
    } while (0)

static int cut_while_open(embla_placement place)
{
    embla_store *store = NULL;
    embla_verify_report v;
    unsigned char out[160] = {0};
    WRONG_UNLESS(open_rows(place, &store) == EMBLA_OK);
    WRONG_UNLESS(fetch_row(store, 3, out) == EMBLA_OK && check(store) == EMBLA_OK && out[0] == 7);
    WRONG_UNLESS(truncate(rows_path, 5000) == 0);
    /* As if it were cut in the middle of a lookup: rows that are gone are touched. */
    for (int64_t row = ROWS - 1; row > 0; row -= 1000) {
        embla_status status = fetch_row(store, row, out);
        WRONG_UNLESS(status == EMBLA_OK ||
                     (place == EMBLA_PLACEMENT_READ && status == EMBLA_ERR_IO));
        if (place == EMBLA_PLACEMENT_RAM) WRONG_UNLESS(out[0] == 7 && out[159] == 7);
    }
    if (place == EMBLA_PLACEMENT_RAM) {
        WRONG_UNLESS(check(store) == EMBLA_OK);
    } else {
        WRONG_UNLESS(check(store) == EMBLA_ERR_IO && strstr(embla_error(), "was truncated"));
        WRONG_UNLESS(embla_store_warm(store, NULL) == EMBLA_ERR_IO);
    }
    WRONG_UNLESS(embla_store_verify(store, 10, 1, &v) == EMBLA_ERR_IO);
    WRONG_UNLESS(strstr(embla_error(), "(C11)"));
    embla_store_free(store);
    return 0;
}

static void a_file_that_is_cut_while_open_is_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_places); i++) {
        rows_start();
        assert_int_equal(child(cut_while_open, all_places[i]), 0);
        scratch_free(&folder);
    }
}

static int cut_before_opening(embla_placement place)
{
    embla_store *store = NULL;
    WRONG_UNLESS(truncate(rows_path, 5000) == 0);
    WRONG_UNLESS(open_rows(place, &store) == EMBLA_ERR_SHAPE && !store);
    WRONG_UNLESS(strstr(embla_error(), "but the file has 5000 bytes"));
    return 0;
}

static void a_file_that_was_cut_before_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_places); i++) {
        rows_start();
        assert_int_equal(child(cut_before_opening, all_places[i]), 0);
        scratch_free(&folder);
    }
}

/* Cut while it is read into memory: the hook is called between the two. */
static embla_status cut_now(void *context, void *memory, size_t bytes)
{
    (void)context, (void)memory, (void)bytes;
    return truncate(rows_path, 500000) == 0 ? EMBLA_OK : EMBLA_ERR_ARGUMENT;
}

/* And one that is written to. */
static embla_status change_now(void *context, void *memory, size_t bytes)
{
    const struct timespec long_ago[] = {{1, 1}, {1, 1}};
    (void)context, (void)memory, (void)bytes;
    return utimensat(AT_FDCWD, rows_path, long_ago, 0) == 0 ? EMBLA_OK : EMBLA_ERR_ARGUMENT;
}

static void a_file_that_is_changed_while_it_is_read_is_a_status(void **state)
{
    embla_store *store = NULL;
    embla_store_options options = {.allocated = change_now};
    (void)state;
    rows_start();
    embla_extent extent = {.file = rows_path, .offset = 100, .rows = ROWS};
    assert_status(embla_store_open_extents(&rows_format, &extent, 1, &options, &store),
                  EMBLA_ERR_IO);
    assert_error_has("was changed while open: at 1.000000001");
    assert_null(store);
    scratch_free(&folder);
}

static int cut_while_filling(embla_placement place)
{
    embla_store *store = NULL;
    embla_store_options options = {.placement = place, .allocated = cut_now};
    embla_extent extent = {.file = rows_path, .offset = 100, .rows = ROWS};
    WRONG_UNLESS(embla_store_open_extents(&rows_format, &extent, 1, &options, &store) ==
                 EMBLA_ERR_IO);
    WRONG_UNLESS(!store && strstr(embla_error(), "was truncated while it was open"));
    return 0;
}

static void a_file_that_is_cut_while_it_is_read_is_a_status(void **state)
{
    (void)state;
    rows_start();
    assert_int_equal(child(cut_while_filling, EMBLA_PLACEMENT_RAM), 0);
    scratch_free(&folder);
}

static void a_file_that_is_replaced_keeps_its_rows_and_verify_says_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_places); i++) {
        embla_store *store = NULL;
        embla_verify_report v = {.rows = -5};
        unsigned char out[160];
        rows_start();
        write_rows(other_path, 9);
        assert_ok(open_rows(all_places[i], &store));
        assert_int_equal(rename(other_path, rows_path), 0);
        assert_ok(check(store));
        assert_ok(fetch_row(store, ROWS - 1, out));
        assert_int_equal(out[0], 7);
        assert_status(embla_store_verify(store, 10, 1, &v), EMBLA_ERR_IO);
        assert_error_has("was replaced while open");
        assert_int_equal(unlink(rows_path), 0);
        assert_status(embla_store_verify(store, 10, 1, &v), EMBLA_ERR_IO);
        assert_error_has("was removed while open");
        assert_int_equal(v.rows, -5); /* untouched */
        embla_store_free(store);
        scratch_free(&folder);
    }
}

static void a_file_that_is_changed_or_grows_is_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all_places); i++) {
        embla_store *store = NULL;
        embla_verify_report v;
        struct stat now;
        rows_start();
        assert_ok(open_rows(all_places[i], &store));
        assert_int_equal(stat(rows_path, &now), 0);
        struct timespec later = now.st_mtim;
        later.tv_nsec ^= 1;
        int fd = open(rows_path, O_WRONLY);
        assert_true(fd >= 0);
        assert_int_equal(pwrite(fd, "x", 1, 5000), 1);
        assert_int_equal(futimens(fd, (struct timespec[]){later, later}), 0);
        assert_status(check(store), i == 0 ? EMBLA_OK : EMBLA_ERR_IO);
        assert_status(embla_store_verify(store, 10, 1, &v), EMBLA_ERR_IO);
        assert_error_has("was changed while open: at ");
        later = now.st_mtim;
        later.tv_sec++;
        assert_int_equal(futimens(fd, (struct timespec[]){later, later}), 0);
        assert_status(check(store), i == 0 ? EMBLA_OK : EMBLA_ERR_IO);
        assert_status(embla_store_verify(store, 10, 1, &v), EMBLA_ERR_IO);
        /* One byte more, and the old time: only verify looks for that. */
        assert_int_equal(pwrite(fd, "x", 1, now.st_size), 1);
        assert_int_equal(futimens(fd, (struct timespec[]){now.st_mtim, now.st_mtim}), 0);
        assert_ok(check(store));
        assert_status(embla_store_verify(store, 10, 1, &v), EMBLA_ERR_IO);
        assert_error_has("it has 9600101 bytes, it had 9600100");
        assert_int_equal(close(fd), 0);
        embla_store_free(store);
        scratch_free(&folder);
    }
}

/* ---- failures ---- */

static embla_status whole_life(void)
{
    embla_checkpoint *checkpoint = NULL;
    embla_store *store = NULL;
    unsigned char out[264];
    embla_status status = embla_checkpoint_open(rows_path, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_store_open(checkpoint, NULL, -1, NULL, &store);
    if (status == EMBLA_OK) status = fetch_row(store, 5, out);
    if (status == EMBLA_OK)
        for (size_t i = 0; i < 256; i++)
            assert_int_equal(out[i], byte_of(ENGRAM(1) "weight", 5 * 256 + i));
    embla_store_free(store);
    embla_checkpoint_free(checkpoint);
    return status;
}

static void every_failure_of_memory_or_system_is_a_status(void **state)
{
    enum { MANY = 4096 };
    size_t live = embla_mem_live(), files = embla_io_live(), left = 0, n;
    embla_file_facts found;
    (void)state;
    add_engram();
    embla_checkpoint_free(made());
    (void)snprintf(rows_path, sizeof rows_path, "%s", folder.path);
    for (int forever = 0; forever < 2; forever++)
        for (n = 1;; n++) {
            embla_mem_fail(n, forever);
            embla_status status = whole_life();
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
        }
    assert_true(n > 5);
    embla_io_fail(MANY, false, EMBLA_SYSTEM_OTHER);
    assert_ok(whole_life());
    while (embla_io_facts(STDERR_FILENO, "counting", &found) == EMBLA_OK) left++;
    for (int forever = 0; forever < 2; forever++)
        for (n = 1; n <= MANY - 1 - left; n++) {
            embla_io_fail(n, forever, EMBLA_SYSTEM_OTHER);
            embla_status status = whole_life();
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_IO);
        }
    scratch_free(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka takes SIGBUS for itself before each test, and what a child installs must
         * come after that. */
        cmocka_unit_test(a_file_that_is_cut_while_open_is_a_status),
        cmocka_unit_test(the_shards_of_qwen_are_one_table),
        cmocka_unit_test(without_a_scale_it_is_one),
        cmocka_unit_test(a_table_in_one_part_is_found_too),
        cmocka_unit_test(shards_in_several_files_are_one_table),
        cmocka_unit_test(parts_that_do_not_fit_are_refused),
        cmocka_unit_test(the_tables_of_longcat_are_one),
        cmocka_unit_test(layers_of_deepseek_have_a_table_each),
        cmocka_unit_test(groups_are_told_by_the_shape_of_the_scales),
        cmocka_unit_test(scales_that_are_none_are_refused),
        cmocka_unit_test(the_per_layer_table_of_gemma_serves_all_layers),
        cmocka_unit_test(tables_of_gguf_are_found),
        cmocka_unit_test(what_cannot_be_found_is_said),
        cmocka_unit_test(a_tensor_named_after_the_path_is_the_table),
        cmocka_unit_test(rows_that_are_text_are_left_to_tables),
        cmocka_unit_test(a_file_that_was_cut_before_is_refused),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_read_is_a_status),
        cmocka_unit_test(a_file_that_is_changed_while_it_is_read_is_a_status),
        cmocka_unit_test(a_file_that_is_replaced_keeps_its_rows_and_verify_says_so),
        cmocka_unit_test(a_file_that_is_changed_or_grows_is_a_status),
        cmocka_unit_test(every_failure_of_memory_or_system_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
