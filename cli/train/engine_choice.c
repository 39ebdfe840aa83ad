/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of `embla train`. A build has one library, or none; the name of another one is
 * refused. */
#include "train/engine_choice.h"

#include <string.h>

#include "embla_lab.h"

#include "core/complain.h"

const char *cli_engine_choice(size_t n)
{
    static const char *const names[] = {"auto", "none", "onednn", "cblas"};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* Whether the library of this build is the one with this name. CBLAS has many names. */
static bool is_built(const char *name)
{
    const char *built = embla_engine_name();
    bool onednn = strncmp(built, "oneDNN", strlen("oneDNN")) == 0;
    if (strcmp(built, "none") == 0) return false;
    return onednn == (strcmp(name, "onednn") == 0);
}

int cli_engine_read(const cli_args *args, embla_train_engine *out)
{
    const char *name = cli_args_text(args, "engine");
    bool none = name && strcmp(name, "none") == 0;
    if (!name || strcmp(name, "auto") == 0) return CLI_DONE;
    if (none && cli_args_flag(args, "shard-tokens"))
        return cli_usage("--engine none and --shard-tokens cannot be used together: the loss of "
                         "divided rows needs an engine");
    if (!none && strcmp(embla_engine_name(), "none") == 0)
        return cli_usage("--engine %s: %s", name, embla_engine_warning());
    if (!none && !is_built(name))
        return cli_usage("--engine %s: this program has %s; use --engine auto, or build it with "
                         "-DEMBLA_ENGINE=%s",
                         name, embla_engine_name(), name);
    *out = none ? EMBLA_TRAIN_ENGINE_NONE : EMBLA_TRAIN_ENGINE_LIBRARY;
    return CLI_DONE;
}

const char *cli_engine_used(const cli_training *t)
{
    size_t tokens = t->options.batch * t->options.length, dim = t->shape.dim;
    bool large = (double)tokens * (double)dim * (double)dim > 131072.0;
    embla_train_options o;
    if (t->team.shard_tokens) return embla_engine_name(); /* its loss always uses the engine */
    if (embla_train_describe(t->train, &o) != EMBLA_OK || o.engine == EMBLA_TRAIN_ENGINE_NONE)
        return NULL;
    return large ? embla_engine_name() : NULL; /* asking for the name loads the library */
}
