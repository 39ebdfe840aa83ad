/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 writes the files and reads the rows of all ranks while it does, a piece at a time. So it
 * needs disk but no memory for them. The bytes do not depend on the number of ranks.
 */
#include "cluster/team_model.h"

#include "cluster/sharded.h"
#include "model/gpt_ngram.h"
#include "model/gpt_trunk.h"

enum { GRAMS, TOKENS, HEAD, TABLES };

_Static_assert((int)TABLES <= (int)EMBLA_SHARDED_STREAMS, "a stream for each table");

/* What rank 0 writes. */
typedef struct {
    embla_gpt *gpt;
    const char *folder;
    const char *const *words;
    embla_sharded *tables[TABLES]; /* NULL: the model has none, or has the rows itself */
} model;

static embla_status write_model(void *context, embla_sharded_read *read, void *const *rows)
{
    const model *m = context;
    void *of[TABLES] = {0};
    for (size_t i = 0, used = 0; i < TABLES; i++)
        if (m->tables[i]) of[i] = rows[used++];
    if (of[GRAMS])
        embla_gpt_ngram_source(
            m->gpt, &(embla_gpt_ngram_rows){.away = true, .read = read, .context = of[GRAMS]});
    if (of[TOKENS]) embla_gpt_rows_source(m->gpt, &(embla_gpt_readers){read, of[TOKENS], of[HEAD]});
    embla_status status = embla_gpt_save(m->gpt, m->folder, m->words);
    if (of[GRAMS]) embla_gpt_ngram_source(m->gpt, &(embla_gpt_ngram_rows){.away = true});
    if (of[TOKENS]) embla_gpt_rows_source(m->gpt, &(embla_gpt_readers){0});
    return status;
}

embla_status embla_team_model_save(const embla_team_grams *grams, const embla_team_tokens *tokens,
                                   embla_gpt *gpt, const char *folder, const char *const *words)
{
    model m = {.gpt = gpt,
               .folder = folder,
               .words = words,
               .tables = {[GRAMS] = grams ? embla_team_grams_table(grams) : NULL,
                          [TOKENS] = tokens ? embla_team_tokens_table(tokens) : NULL,
                          [HEAD] = tokens ? embla_team_tokens_head(tokens) : NULL}};
    embla_sharded *used[TABLES];
    size_t count = 0;
    for (size_t i = 0; i < TABLES; i++)
        if (m.tables[i]) used[count++] = m.tables[i];
    return embla_sharded_stream(used, count, write_model, &m);
}
