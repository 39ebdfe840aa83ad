/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint says about its positions. */
#include <stdio.h>
#include <string.h>

#include "verbs/embed_job.h"

static const char *const kinds[] = {"auto", "learned", "sinusoidal", "rotary", "none"};

const char *cli_embed_kind_name(size_t n)
{
    return n < sizeof kinds / sizeof kinds[0] ? kinds[n] : NULL;
}

cli_embed_kind cli_embed_kind_of(const embla_checkpoint *checkpoint)
{
    const char *said = embla_checkpoint_text(checkpoint, "positions"); /* in models of ours */
    if (cli_learned_known(checkpoint)) return CLI_EMBED_LEARNED;
    if (said && strcmp(said, "sinusoidal") == 0) return CLI_EMBED_SINUSOIDAL;
    return cli_rotary_known(checkpoint) ? CLI_EMBED_ROTARY : CLI_EMBED_NONE;
}

/* ---- a position table ---- */

bool cli_learned_known(const embla_checkpoint *checkpoint)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(checkpoint, &count);
    for (size_t n = 0; n < count; n++)
        if (tensors[n].role == EMBLA_ROLE_POSITIONS) return true;
    return false;
}

int cli_learned_open(const cli_model *model, size_t dim, cli_learned *out)
{
    const embla_checkpoint *checkpoint = model->checkpoint;
    if (!cli_learned_known(checkpoint))
        return cli_failed("the checkpoint has no position table; use --positions sinusoidal, "
                          "rotary or none");
    if (embla_checkpoint_role(checkpoint, EMBLA_ROLE_POSITIONS, &out->tensor, NULL) != EMBLA_OK ||
        embla_table_open(checkpoint, out->tensor.name, NULL, &out->table) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (embla_table_dim(out->table) != dim)
        return cli_failed("the position table '%.128s' has dim %zu, but the token table has %zu: "
                          "they cannot be added",
                          out->tensor.name, embla_table_dim(out->table), dim);
    out->zero = model->facts.first_position;
    return CLI_DONE;
}

/* ---- rotary positions ---- */

/* A number of config.json, or of a GGUF under the name of its architecture. */
static bool read_fact(const embla_checkpoint *checkpoint, const char *key, const char *gguf,
                      double *out)
{
    const char *architecture = embla_checkpoint_text(checkpoint, "general.architecture");
    char name[128];
    if (embla_checkpoint_real(checkpoint, key, out) == EMBLA_OK) return true;
    if (!architecture) return false;
    (void)snprintf(name, sizeof name, "%.60s.%s", architecture, gguf);
    return embla_checkpoint_real(checkpoint, name, out) == EMBLA_OK;
}

bool cli_rotary_known(const embla_checkpoint *checkpoint)
{
    const char *said = embla_checkpoint_text(checkpoint, "positions"); /* in models of ours */
    double theta;
    if (said) return strcmp(said, "rotary") == 0;
    return read_fact(checkpoint, "rope_theta", "rope.freq_base", &theta);
}

bool cli_rotary_read(const embla_checkpoint *checkpoint, size_t dim, cli_rotary *out)
{
    double heads = 0, head = 0, theta = 0, factor;
    *out = (cli_rotary){.theta = 10000, .dim = dim};
    if (read_fact(checkpoint, "rope_theta", "rope.freq_base", &theta) && theta > 0)
        out->theta = theta;
    if (read_fact(checkpoint, "num_attention_heads", "attention.head_count", &heads) &&
        heads >= 1 && heads <= (double)dim)
        out->heads = (size_t)heads;
    if (read_fact(checkpoint, "head_dim", "rope.dimension_count", &head) && head >= 2 && head < 1e6)
        out->dim = (size_t)head;
    else if (out->heads > 0 && dim % out->heads == 0)
        out->dim = dim / out->heads;
    out->scaled = embla_checkpoint_real(checkpoint, "rope_scaling.factor", &factor) == EMBLA_OK;
    return out->dim % 2 == 0;
}
