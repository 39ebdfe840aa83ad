/* SPDX-License-Identifier: Apache-2.0 */
/* seeds FOLDER: writes the seeds of fuzz_model.c and fuzz_resume.c to FOLDER/model and
 * FOLDER/resume, which must exist. They are small models that the library itself has saved, and
 * folders with the config.json of each kind of n-gram table. */
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "model_files.h"
#include "training.h"

static const char *out;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != EMBLA_OK) {                                                                  \
            fprintf(stderr, "seeds: %s\n", embla_error());                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static FILE *create(const char *target, const char *name)
{
    char path[FOLDER_PATH];
    (void)snprintf(path, sizeof path, "%s/%s/%s", out, target, name);
    FILE *file = fopen(path, "wb");
    if (!file) exit(1);
    return file;
}

static void put(FILE *file, const void *bytes, size_t size)
{
    if (size > 0 && fwrite(bytes, size, 1, file) != 1) exit(1);
}

/* ---- folders ---- */

static void put_file(FILE *seed, const char *name, const void *bytes, size_t size)
{
    uint8_t head[MODEL_FILE_HEAD] = {0, (uint8_t)size, (uint8_t)(size >> 8)};
    if (size > 65535) exit(1);
    while (strcmp(model_files[head[0]], name) != 0) head[0]++;
    put(seed, head, sizeof head);
    put(seed, bytes, size);
}

/* Appends a file of the folder, if there is one. */
static void put_path(FILE *seed, const char *name, const char *path)
{
    static char bytes[65536];
    FILE *file = fopen(path, "rb");
    if (!file) return;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    put_file(seed, name, bytes, size);
}

/* Writes a seed of all files in the folder of a saved model. */
static void pack(const char *name, uint8_t choice, const char *from)
{
    char path[FOLDER_PATH];
    FILE *seed = create("model", name);
    put(seed, &choice, 1);
    for (size_t i = 0; i < MODEL_FILES; i++) {
        (void)snprintf(path, sizeof path, "%.300s/%s", from, model_files[i]);
        put_path(seed, model_files[i], path);
    }
    if (fclose(seed) != 0) exit(1);
}

static void save_model(const char *name, uint8_t choice, const embla_gpt_shape *shape)
{
    static const char *const words[] = {"a", "b", "ab", "\n", "c"};
    char path[FOLDER_PATH];
    embla_gpt *gpt = NULL;
    folder_clear(folder, false);
    MUST(embla_gpt_new(shape, 1, 0, &gpt));
    MUST(embla_gpt_save(gpt, folder_path("saved", path), words));
    pack(name, choice, path);
    embla_gpt_free(gpt);
}

/* The folder of the last model as GGUF, alone, and with an index that lists its tensors. */
static void convert_model(void)
{
    char from[FOLDER_PATH], to[FOLDER_PATH], index[4096];
    size_t count, used;
    embla_checkpoint *cp = NULL;
    embla_account *account = NULL;
    MUST(embla_checkpoint_open(folder_path("saved", from), NULL, &cp));
    MUST(embla_convert(cp, folder_path("model.gguf", to), NULL, &account));
    FILE *seed = create("model", "gguf");
    put(seed, "\2", 1);
    put_path(seed, "model.gguf", to);
    if (fclose(seed) != 0) exit(1);
    const embla_tensor *tensors = embla_checkpoint_tensors(cp, &count);
    used = (size_t)snprintf(index, sizeof index, "{\"weight_map\":{");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(index + used, sizeof index - used, "%s\"%s\":\"b.safetensors\"",
                                 i > 0 ? "," : "", tensors[i].name);
    used += (size_t)snprintf(index + used, sizeof index - used, "}}");
    seed = create("model", "shards");
    put(seed, "\0", 1);
    put_file(seed, "model.safetensors.index.json", index, used);
    (void)snprintf(to, sizeof to, "%.300s/model.safetensors", from);
    put_path(seed, "b.safetensors", to);
    (void)snprintf(to, sizeof to, "%.300s/config.json", from);
    put_path(seed, "config.json", to);
    if (fclose(seed) != 0) exit(1);
    embla_account_free(account);
    embla_checkpoint_free(cp);
}

/* One tensor of 6 x 2 floats, and a config.json. */
static void write_table(const char *name, const char *tensor, const char *config)
{
    char bytes[512] = {0};
    uint64_t header = (uint64_t)snprintf(
        bytes + 8, sizeof bytes - 8,
        "{\"%s\":{\"dtype\":\"F32\",\"shape\":[6,2],\"data_offsets\":[0,48]}}", tensor);
    FILE *seed = create("model", name);
    memcpy(bytes, &header, sizeof header);
    put(seed, "@", 1); /* 64 */
    put_file(seed, "model.safetensors", bytes, 8 + header + 48);
    put_file(seed, "config.json", config, strlen(config));
    put_file(seed, "vocab.txt", "a\nb\nc\nd\ne\nf\n", 12);
    if (fclose(seed) != 0) exit(1);
}

static void write_models(void)
{
    const embla_gpt_shape gpt2 = {
        .vocab = 5, .dim = 2, .layers = 1, .heads = 1, .hidden = 2, .positions = 3, .biases = true};
    const embla_gpt_shape llama = {.vocab = 5,
                                   .dim = 4,
                                   .layers = 1,
                                   .heads = 2,
                                   .kv_heads = 1,
                                   .hidden = 2,
                                   .positions = 3,
                                   .norm = EMBLA_NORM_RMS,
                                   .activation = EMBLA_ACTIVATION_SWIGLU,
                                   .position_kind = EMBLA_POSITIONS_ROTARY,
                                   .untied = true};
    embla_gpt_shape own = gpt2;
    own.ngram = (embla_gpt_ngram){.rows = 12, .heads = 1, .orders = 2, .dim = 2, .seed = 1};
    save_model("own", 4 + 64, &own);
    save_model("llama", 12, &llama);
    save_model("gpt2", 4, &gpt2);
    convert_model();
    write_table("tied", "model.embed_tokens.weight",
                "{\"model_type\":\"llama\",\"tie_word_embeddings\":true,\"hidden_size\":2}");
    write_table("engram", "engram.table",
                "{\"engram_vocab_size\":99,\"engram_max_ngram_size\":3,\"engram_num_heads\":2,"
                "\"engram_layer_ids\":[4],\"engram_compressed_vocab_size\":3,\"engram_pad_id\":3}");
    write_table("longcat", "model.ngram_embeddings.0.weight",
                "{\"model_type\":\"longcat_flash\",\"ngram_vocab_size_ratio\":7,"
                "\"emb_neighbor_num\":3,\"emb_split_num\":2,\"vocab_size\":9,\"eos_token_id\":2}");
    write_table("gemma3n", "model.language_model.embed_tokens_per_layer.weight",
                "{\"text_config\":{\"model_type\":\"gemma3n_text\",\"num_hidden_layers\":1,"
                "\"hidden_size_per_layer_input\":2,\"vocab_size_per_layer_input\":6}}");
}

/* ---- checkpoints of a training ---- */

static void write_checkpoints(void)
{
    static const char *const names[] = {"begin", "one_step", "two_steps"};
    char path[FOLDER_PATH];
    training t = training_start();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/resume/%s", out, names[i]);
        MUST(embla_train_save(t.train, path, i == 1 ? "a note" : NULL));
        MUST(embla_train_step(t.train, NULL));
    }
    training_stop(&t);
    embla_corpus_free(corpus);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: seeds FOLDER\n");
        return 2;
    }
    out = argv[1];
    training_set_up();
    write_checkpoints();
    write_models();
    return 0;
}
