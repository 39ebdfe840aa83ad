/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the progress of a training. Facts, report lines and the summary go to stdout. The redrawn
 * line goes to stderr, if that is a terminal. If both are the same terminal, report lines are
 * printed only with --every.
 */
#include "train/train_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_lab.h"

#include "core/inputs.h"
#include "core/out.h"
#include "host/host.h"
#include "train/engine_choice.h"
#include "train/train_make.h"
#include "train/train_ranks.h"

/* ---- numbers for people ---- */

/* "0:43", "2:10:05". */
static const char *clock_text(double seconds, char text[CLI_CELL])
{
    if (!(seconds >= 0) || seconds > 3e9) {
        (void)snprintf(text, CLI_CELL, "-");
        return text;
    }
    int64_t all = (int64_t)(seconds + 0.5);
    if (all < 3600)
        (void)snprintf(text, CLI_CELL, "%d:%02d", (int)(all / 60), (int)(all % 60));
    else
        (void)snprintf(text, CLI_CELL, "%" PRId64 ":%02d:%02d", all / 3600, (int)(all / 60 % 60),
                       (int)(all % 60));
    return text;
}

static const char *left_text(const cli_training *t, char text[CLI_CELL])
{
    int64_t left = t->steps - embla_train_steps(t->train);
    double spent = t->begun > 0 ? cli_progress_now() - t->begun : 0;
    int64_t done = embla_train_steps(t->train) - t->first;
    return clock_text(done > 0 ? spent / (double)done * (double)left : NAN, text);
}

static const char *real_text(double value, char text[CLI_CELL])
{
    (void)snprintf(text, CLI_CELL, isfinite(value) ? "%.4f" : "-", value);
    return text;
}

/* ---- the beginning ---- */

static const char *const norm_names[] = {"layer norm", "RMS norm"};
static const char *const activation_names[] = {"GELU", "ReLU", "ReLU squared", "SwiGLU"};
static const char *const position_names[] = {"learned", "sinusoidal", "rotary", "no"};

static int threads_of(const cli_training *t)
{
    if (t->options.threads > 0) return t->options.threads;
    return embla_default_threads();
}

static void plan_memory(const cli_training *t, embla_gpt_memory *plan)
{
    if (cli_make_plan(t, plan) != EMBLA_OK) *plan = (embla_gpt_memory){0};
}

const char *cli_view_memory(const cli_training *t, char text[CLI_CELL])
{
    embla_gpt_memory plan;
    plan_memory(t, &plan);
    return cli_size(plan.total, text);
}

void cli_view_text(const cli_training *t)
{
    char tokens[CLI_CELL], vocab[CLI_CELL], documents[CLI_CELL], kept[CLI_CELL];
    const embla_corpus *c = t->corpus;
    double share = t->corpus_options.validation;
    if (share == 0) share = 0.1; /* the default; documents have no validation by default */
    (void)snprintf(kept, sizeof kept, "%.3g %% of it", 100 * share);
    if (t->corpus_options.documents)
        (void)snprintf(documents, sizeof documents, " in %s",
                       cli_plural(embla_corpus_documents(c), "document", vocab));
    else
        documents[0] = '\0';
    cli_out_fact("text", "%s: %s%s, vocabulary of %s; %s set aside for validation",
                 t->named ? t->named : t->text, cli_plural(embla_corpus_tokens(c), "token", tokens),
                 documents, cli_commas(embla_corpus_vocab(c), vocab),
                 t->validates ? kept : "nothing");
    int64_t unknown = 0;
    if (embla_corpus_unknown(c, &unknown) >= 0)
        cli_out_fact("unknown", "%s (%.2f %%): words outside the vocabulary",
                     cli_plural(unknown, "token", tokens),
                     100.0 * (double)unknown / (double)embla_corpus_tokens(c));
    if (t->vocab)
        cli_out_fact("vocabulary", "%s, from %s",
                     cli_plural(embla_vocab_count(t->vocab), "word", tokens),
                     cli_input_name(embla_vocab_source(t->vocab)));
}

/* Options can make a shape of GPT-2 or Llama one that only Embla opens. */
static void print_family(const cli_training *t)
{
    embla_gpt_preset preset;
    if (!t->preset || embla_gpt_preset_find(t->preset, &preset) != EMBLA_OK) return;
    if (strcmp(embla_gpt_family(&t->shape), "embla") == 0 &&
        strcmp(embla_gpt_family(&preset.shape), "embla") != 0)
        cli_out_fact("format", "model_type embla, for embla alone: %s has no such model",
                     strcmp(embla_gpt_family(&preset.shape), "llama") == 0 ? "Llama" : "GPT-2");
}

/* Rows that --from does not have, what is frozen, and the kind of loss. */
static void print_parts(const cli_training *t)
{
    static const char *const names[] = {"tokens", "positions", "trunk"};
    const embla_train_options *o = &t->options;
    char text[128] = "", rows[CLI_CELL];
    size_t used = 0;
    for (unsigned n = 0; n < 3; n++)
        if (o->freeze & 1u << n)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                                     names[n]);
    if (o->freeze_below > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "%sthe first %s",
                                 used > 0 ? ", " : "", cli_plural(o->freeze_below, "row", rows));
    if (t->added_rows > 0)
        cli_out_fact("added", "%s, for tokens that %s does not have",
                     cli_plural(t->added_rows, "row", rows), t->from);
    if (used > 0) cli_out_fact("frozen", "%s", text);
    if (o->negatives > 0)
        cli_out_fact("loss", "of steps against %s drawn tokens, of validation against all",
                     cli_commas((int64_t)o->negatives, rows));
}

static void print_model(const cli_training *t)
{
    const embla_gpt_shape *s = &t->shape;
    char number[CLI_CELL], rows[CLI_CELL], layers[CLI_CELL], heads[CLI_CELL];
    const char *name = t->preset ? t->preset : t->from;
    cli_out_fact("model",
                 "%s: %s parameters; table %s x %zu, %s of %s, %s, %s, %zu %s positions, %s%s",
                 name, cli_commas(embla_gpt_parameters(t->gpt), number), cli_commas(s->vocab, rows),
                 s->dim, cli_plural((int64_t)s->layers, "layer", layers),
                 cli_plural((int64_t)s->heads, "head", heads), norm_names[s->norm],
                 activation_names[s->activation], s->positions, position_names[s->position_kind],
                 s->untied ? "separate head" : "tied head",
                 t->options.compute == EMBLA_BF16 ? "; products in bf16" : "");
    if (s->ngram.rows > 0) {
        const embla_table *table = embla_gpt_ngram_table(t->gpt);
        cli_out_fact("n-grams", "table of %s rows x %zu, added to layer %zu",
                     cli_commas(table ? embla_table_rows(table) : s->ngram.rows, rows),
                     table ? embla_table_dim(table) : s->ngram.dim, s->ngram.layer);
    }
}

/* The ranks and the micro-batches of a batch; nothing without them. */
static void print_ranks(const cli_training *t)
{
    embla_team_options team;
    char ranks[CLI_CELL], batches[CLI_CELL];
    if (embla_train_describe_team(t->train, &team) != EMBLA_OK) return;
    cli_out_fact("ranks", "%s (%s); %s micro-batch%s in a batch, gradients summed %s%s%s",
                 cli_plural(t->ranks.comm->size, "rank", ranks), t->ranks.comm->name,
                 cli_commas((int64_t)team.micro_batches, batches),
                 team.micro_batches == 1 ? "" : "es", team.fast ? "in floats" : "exactly",
                 team.shard_ngrams ? "; n-gram rows divided" : "",
                 team.shard_tokens ? "; token rows divided" : "");
}

static void print_training(const cli_training *t)
{
    const embla_schedule *s = &t->options.schedule;
    embla_gpt_memory plan;
    char cells[5][CLI_CELL], warm[CLI_CELL] = "", steps[CLI_CELL];
    const char *engine = cli_engine_used(t);
    plan_memory(t, &plan);
    cli_out_fact("memory", "%s weights + %s gradients + %s optimizer + %s activations = %s",
                 cli_size(plan.weights, cells[0]), cli_size(plan.gradients, cells[1]),
                 cli_size(plan.optimizer, cells[2]), cli_size(plan.activations, cells[3]),
                 cli_size(plan.total, cells[4]));
    if (s->warm_up > 0)
        (void)snprintf(warm, sizeof warm, ", %s of warm-up", cli_plural(s->warm_up, "step", steps));
    if (s->kind == EMBLA_SCHEDULE_CONSTANT)
        (void)snprintf(cells[0], CLI_CELL, "%g", s->rate);
    else
        (void)snprintf(cells[0], CLI_CELL, "%g to %g (%s)", s->rate, s->final,
                       embla_schedule_name(s->kind));
    cli_out_fact("training", "%s of %zu x %zu tokens, rate %s%s; %s, %s",
                 cli_plural(t->steps, "step", steps), t->options.batch, t->options.length, cells[0],
                 warm, engine ? engine : "plain loops",
                 cli_plural(threads_of(t), "thread", cells[1]));
    if (t->resumed)
        cli_out_fact("resumed", "after step %s, from %s", cli_commas(t->first, steps),
                     t->checkpoint);
    if (t->damaged > 0)
        cli_out_fact("note", "%s newer than this one cannot be read",
                     cli_plural((int64_t)t->damaged, "checkpoint", steps));
    if (engine && embla_engine_warning()) cli_complain("note: %s", embla_engine_warning());
}

static void json_ranks(const cli_training *t, cli_json *json)
{
    embla_team_options team;
    if (embla_train_describe_team(t->train, &team) != EMBLA_OK) return;
    cli_json_whole(json, "ranks", t->ranks.comm->size);
    cli_json_whole(json, "micro_batches", (int64_t)team.micro_batches);
    cli_json_bool(json, "fast", team.fast);
    cli_json_bool(json, "shard_ngrams", team.shard_ngrams);
    cli_json_bool(json, "shard_tokens", team.shard_tokens);
    cli_json_text(json, "communicator", t->ranks.comm->name);
}

static void json_start(const cli_training *t)
{
    cli_json json = {0};
    embla_gpt_memory plan;
    int64_t unknown = 0;
    const char *engine = cli_engine_used(t);
    plan_memory(t, &plan);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "event", "start");
    cli_json_text(&json, "text", t->text);
    cli_json_text(&json, "folder", t->folder);
    cli_json_text(&json, "preset", t->preset);
    cli_json_text(&json, "from", t->from);
    cli_json_whole(&json, "tokens", embla_corpus_tokens(t->corpus));
    cli_json_whole(&json, "documents", embla_corpus_documents(t->corpus));
    cli_json_bool(&json, "validation", t->validates);
    if (embla_corpus_unknown(t->corpus, &unknown) >= 0) cli_json_whole(&json, "unknown", unknown);
    cli_json_text(&json, "model_type", embla_gpt_family(&t->shape));
    cli_json_whole(&json, "parameters", embla_gpt_parameters(t->gpt));
    cli_json_whole(&json, "vocab", t->shape.vocab);
    cli_json_whole(&json, "dim", (int64_t)t->shape.dim);
    cli_json_whole(&json, "layers", (int64_t)t->shape.layers);
    cli_json_whole(&json, "heads", (int64_t)t->shape.heads);
    cli_json_whole(&json, "positions", (int64_t)t->shape.positions);
    cli_json_whole(&json, "batch", (int64_t)t->options.batch);
    cli_json_whole(&json, "length", (int64_t)t->options.length);
    cli_json_whole(&json, "step", t->first);
    cli_json_whole(&json, "steps", t->steps);
    cli_json_open(&json, "memory", '{');
    cli_json_whole(&json, "weights", plan.weights);
    cli_json_whole(&json, "gradients", plan.gradients);
    cli_json_whole(&json, "optimizer", plan.optimizer);
    cli_json_whole(&json, "activations", plan.activations);
    cli_json_whole(&json, "total", plan.total);
    cli_json_close(&json, '}');
    cli_json_text(&json, "engine", engine);
    cli_json_whole(&json, "threads", threads_of(t));
    json_ranks(t, &json);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* Whether report lines are printed: not if the same terminal shows the redrawn line. */
static bool lines_wanted(const cli_training *t)
{
    return !t->quiet && (t->every_asked || !t->progress.shown || !cli_is_terminal(CLI_STDOUT));
}

/* Whether the heading and report lines are printed. */
static bool table_shown(const cli_training *t)
{
    return lines_wanted(t) && t->first < t->steps;
}

void cli_view_start(const cli_training *t)
{
    if (t->quiet) return;
    if (t->json) {
        json_start(t);
    } else {
        cli_view_text(t);
        print_model(t);
        print_family(t);
        print_parts(t);
        print_training(t);
        print_ranks(t);
        cli_film_say_start(&t->film);
        if (table_shown(t))
            printf("\n%12s  %8s  %10s  %11s  %9s\n", "step", "loss", "validation", "tokens/s",
                   "left");
        else
            putchar('\n');
    }
    (void)fflush(stdout);
}

/* ---- during training ---- */

static bool watching(const cli_training *t)
{
    return t->watch.corpus != NULL;
}

/* Writes the redrawn line, no wider than the terminal: if it does not fit, without the speed, then
 * without validation, then without the loss. */
static void progress_line(const cli_training *t, FILE *to)
{
    char text[256], step[CLI_CELL], steps[CLI_CELL], loss[CLI_CELL], left[CLI_CELL];
    char speed[CLI_CELL], validation[CLI_CELL] = "", paced[3 * CLI_CELL] = "";
    char ranks[CLI_CELL], number[CLI_CELL];
    bool many = cli_ranks_many(&t->ranks);
    (void)snprintf(paced, sizeof paced, "  %s tokens/s%s%s",
                   cli_commas((int64_t)cli_training_speed(t), speed), many ? "  " : "",
                   many ? cli_plural(t->ranks.comm->size, "rank", ranks) : "");
    if (isfinite(t->validation))
        (void)snprintf(validation, sizeof validation, "  validation %.4f", t->validation);
    (void)snprintf(loss, sizeof loss, "  loss %.40s", real_text(cli_training_loss(t), number));
    char *const less[] = {paced, validation, loss, NULL};
    for (size_t n = 0;; n++) {
        int used = snprintf(
            text, sizeof text, "%s%sstep %s of %s%s%s%s  %s left", t->label ? t->label : "",
            t->label ? "  " : "", cli_commas(embla_train_steps(t->train), step),
            cli_commas(t->steps, steps), loss, validation, paced, left_text(t, left));
        if (used <= cli_progress_width() || !less[n]) break;
        less[n][0] = '\0';
    }
    fprintf(to, "%.*s", cli_progress_width(), text);
}

int cli_view_draw(cli_training *t, double now, bool last)
{
    char *text = NULL;
    size_t size = 0;
    bool look = watching(t) && (last || now - t->looked >= fmax(0.25, 20 * t->watch.cost));
    if (!t->progress.shown || (!last && now - t->drawn < 0.1)) return CLI_DONE;
    if (look) {
        int code = cli_watch_look(&t->watch, t->options.threads);
        if (code != CLI_DONE) return code;
        t->looked = now;
    }
    FILE *to = cli_text_open(&text, &size);
    if (!to) return cli_failed("no memory for a line");
    if (watching(t) && t->watch.found_count > 0)
        cli_watch_print(&t->watch, to, cli_progress_width(), cli_progress_height() - 2);
    progress_line(t, to);
    if (cli_text_close(to, &text, &size)) cli_progress_draw(&t->progress, text);
    free(text);
    t->drawn = now;
    t->paused = true;
    return CLI_DONE;
}

static void json_report(const cli_training *t, const char *event)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "event", event);
    cli_json_whole(&json, "step", embla_train_steps(t->train));
    cli_json_real(&json, "loss", t->recents > 0 ? t->last.loss : NAN);
    cli_json_real(&json, "mean_loss", cli_training_loss(t));
    cli_json_real(&json, "validation", t->validation);
    cli_json_real(&json, "best_validation", t->best);
    cli_json_real(&json, "rate", t->last.rate);
    cli_json_real(&json, "norm", t->last.norm);
    cli_json_whole(&json, "tokens", t->tokens);
    cli_json_real(&json, "seconds", t->before + t->seconds);
    cli_json_real(&json, "tokens_per_second", cli_training_speed(t));
    cli_json_whole(&json, "left_out", t->left_out);
    if (t->film.bytes > 0) cli_json_text(&json, "film", t->film.path);
    if (watching(t)) cli_watch_json(&t->watch, &json);
    cli_json_close(&json, '}');
    putchar('\n');
}

static void print_report(const cli_training *t)
{
    char step[CLI_CELL], loss[CLI_CELL], validation[CLI_CELL] = "", speed[CLI_CELL];
    char left[CLI_CELL];
    if (t->validated) (void)real_text(t->validation, validation);
    printf("%12s  %8s  %10s  %11s  %9s\n", cli_commas(embla_train_steps(t->train), step),
           real_text(cli_training_loss(t), loss), validation,
           cli_commas((int64_t)cli_training_speed(t), speed), left_text(t, left));
    if (!watching(t)) return;
    putchar('\n');
    cli_watch_print(&t->watch, stdout, cli_out_width(), INT16_MAX);
    putchar('\n');
}

int cli_view_report(cli_training *t)
{
    int code = CLI_DONE;
    if (!lines_wanted(t)) return CLI_DONE;
    if (watching(t)) code = cli_watch_look(&t->watch, t->options.threads);
    if (code != CLI_DONE) return code;
    cli_progress_wipe(&t->progress);
    if (t->json)
        json_report(t, "report");
    else
        print_report(t);
    (void)fflush(stdout);
    return CLI_DONE;
}

/* ---- the end ---- */

static const char *seconds_text(double seconds, char text[CLI_CELL])
{
    (void)snprintf(text, CLI_CELL, seconds < 10 ? "%.3f s" : "%.1f s", seconds);
    return text;
}

/* Whether the last validation used only a part of the validation text. */
static bool validation_is_partial(const cli_training *t)
{
    size_t count = t->options.batch * t->options.length;
    int32_t *tokens = t->batches > 0 ? malloc(2 * count * sizeof *tokens) : NULL;
    bool more = tokens && embla_corpus_batch(t->corpus,
                                             &(embla_corpus_request){.step = t->batches,
                                                                     .batch = t->options.batch,
                                                                     .length = t->options.length,
                                                                     .validation = true},
                                             tokens, tokens + count, NULL) == EMBLA_OK;
    free(tokens);
    return more;
}

static const char *pace_text(double pace, char text[CLI_CELL])
{
    if (pace >= 100) return cli_commas((int64_t)pace, text);
    (void)snprintf(text, CLI_CELL, "%.3g", pace);
    return text;
}

static void print_end(const cli_training *t)
{
    char steps[CLI_CELL], seconds[CLI_CELL], speed[CLI_CELL], pace[CLI_CELL];
    int64_t done = embla_train_steps(t->train), count = t->recents;
    bool more = validation_is_partial(t);
    if (table_shown(t) && !watching(t)) putchar('\n');
    if (count > CLI_RECENT) count = CLI_RECENT;
    if (done > t->first)
        cli_out_fact("steps", "%s in %s: %s steps and %s tokens per second",
                     cli_plural(done - t->first, "step", steps), seconds_text(t->seconds, seconds),
                     pace_text(cli_training_pace(t), pace),
                     cli_commas((int64_t)cli_training_speed(t), speed));
    else
        cli_out_fact("steps", "none%s", t->resumed ? ": the training was already complete" : "");
    if (count > 0)
        cli_out_fact("loss", "%.4f, the mean of the last %s", cli_training_loss(t),
                     cli_plural(count, "step", pace));
    if (isfinite(t->validation))
        cli_out_fact("validation", "%.4f%s%s%s", t->validation, more ? ", over the first " : "",
                     more ? cli_commas(t->batches, pace) : "", more ? " batches" : "");
    if (isfinite(t->best) && t->best_step < done)
        cli_out_fact("best", "%.4f after step %s, in %s/best", t->best,
                     cli_commas(t->best_step, pace), t->folder);
    if (t->left_out > 0)
        cli_out_fact("left out", "%s: the gradient was not finite",
                     cli_plural(t->left_out, "step", pace));
    cli_out_fact("written", "%s: model.safetensors, checkpoints, loss.csv%s%s", t->folder,
                 t->plot ? "; " : "", t->plot ? t->plot : "");
    cli_film_say_end(&t->film);
    if (done >= t->steps)
        cli_out_fact("next", "embla generate %s", t->folder);
    else if (t->out_of_time)
        cli_out_fact("next", "the time is over; embla train --resume %s continues", t->folder);
}

void cli_view_end(const cli_training *t)
{
    if (t->json)
        json_report(t, embla_train_steps(t->train) >= t->steps ? "done"
                       : t->out_of_time                        ? "out of time"
                                                               : "interrupted");
    else
        print_end(t);
}
