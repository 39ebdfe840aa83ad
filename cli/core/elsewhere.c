/* SPDX-License-Identifier: Apache-2.0 */
/* Names of options in gensim, fastText, word2vec, SentencePiece, Hugging Face's libraries,
 * scikit-learn and llama.cpp. One of them may stand for several options: the first that the verb
 * has is meant.
 */
#include "core/elsewhere.h"

#include <ctype.h>
#include <string.h>

enum { MEANT_MOST = 3 };

static const struct {
    const char *word, *meant[MEANT_MOST];
} options[] = {
    {"vocab", {"size", "words", "tokenizer"}},
    {"vocab-size", {"size", "most-words", "rows"}},
    {"vocabulary-size", {"size", "most-words", "rows"}},
    {"max-vocab-size", {"size", "most-words", "rows"}},
    {"max-final-vocab", {"most-words", "size"}},
    {"num-embeddings", {"rows"}},
    {"vector-size", {"dim"}},
    {"vectors-size", {"dim"}},
    {"embedding-dim", {"dim"}},
    {"embedding-size", {"dim"}},
    {"embed-dim", {"dim"}},
    {"hidden-size", {"dim"}},
    {"d-model", {"dim"}},
    {"n-embd", {"dim"}},
    {"dimensions", {"dim"}},
    {"n-components", {"dim", "components"}},
    {"lr", {"rate"}},
    {"alpha", {"rate"}},
    {"learning-rate", {"rate"}},
    {"top-n", {"top"}},
    {"topn", {"top"}},
    {"topk", {"top", "top-k"}},
    {"k", {"top", "top-k"}},
    {"n-neighbors", {"neighbours", "top"}},
    {"neighbors", {"neighbours", "top"}},
    {"perplexity", {"neighbours"}},
    {"limit", {"top", "rows", "max-tokens"}},
    {"restrict-vocab", {"rows"}},
    {"iter", {"epochs", "steps"}},
    {"iters", {"epochs", "steps"}},
    {"iterations", {"epochs", "steps"}},
    {"max-iters", {"steps", "epochs"}},
    {"max-steps", {"steps"}},
    {"num-train-epochs", {"epochs"}},
    {"batch-size", {"batch"}},
    {"block-size", {"length"}},
    {"context-length", {"length", "window"}},
    {"ctx-size", {"length"}},
    {"seq-length", {"length", "max-tokens"}},
    {"max-length", {"max-tokens", "length", "tokens"}},
    {"max-new-tokens", {"tokens"}},
    {"n-predict", {"tokens"}},
    {"ws", {"window"}},
    {"window-size", {"window"}},
    {"min-frequency", {"min-count", "least"}},
    {"min-count", {"least"}},
    {"mincount", {"least", "min-count"}},
    {"neg", {"negatives"}},
    {"n-layer", {"layers"}},
    {"n-layers", {"layers"}},
    {"num-layers", {"layers"}},
    {"num-hidden-layers", {"layers"}},
    {"n-head", {"heads"}},
    {"num-heads", {"heads"}},
    {"weight-decay", {"decay"}},
    {"warmup-steps", {"warm-up"}},
    {"grad-clip", {"clip"}},
    {"jobs", {"threads"}},
    {"n-jobs", {"threads"}},
    {"workers", {"threads"}},
    {"cores", {"threads"}},
    {"out", {"output"}},
    {"outfile", {"output"}},
    {"output-file", {"output"}},
    {"output-dir", {"output"}},
    {"model-prefix", {"output"}},
    {"model-type", {"kind"}},
    {"algorithm", {"kind", "layout"}},
    {"cbow", {"kind"}},
    {"skipgram", {"kind"}},
    {"sg", {"kind"}},
    {"special-tokens", {"special"}},
    {"user-defined-symbols", {"special"}},
    {"random-state", {"seed"}},
    {"random-seed", {"seed"}},
    {"num-samples", {"count", "sample"}},
    {"temp", {"temperature"}},
    {"metric", {"measure"}},
    {"distance", {"measure"}},
    {"precision", {"dtype"}},
    {"outtype", {"dtype"}},
    {"quantize", {"dtype"}},
    {"quantization", {"dtype"}},
    {"overwrite", {"force"}},
    {"silent", {"quiet"}},
    {"colour", {"color"}},
    {"verbose", {"all"}},
};

static const char *const inputs[] = {"input",       "infile", "input-file", "corpus",
                                     "corpus-file", "file",   "model",      "model-path"};

/* Whether two names are equal: capitals and small letters are the same, and so are _ and -. */
static bool is_same(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const int x = *a == '_' ? '-' : tolower((unsigned char)*a);
        if (x != *b) return false;
    }
    return *a == *b;
}

static bool has_option(const cli_verb *verb, const char *name)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++)
        if (strcmp(option->name, name) == 0) return true;
    return false;
}

const char *cli_elsewhere_option(const cli_verb *verb, const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (!is_same(name, options[i].word)) continue;
        for (size_t n = 0; n < MEANT_MOST && options[i].meant[n]; n++)
            if (has_option(verb, options[i].meant[n])) return options[i].meant[n];
    }
    return NULL;
}

bool cli_elsewhere_input(const char *name)
{
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (is_same(name, inputs[i])) return true;
    return false;
}
