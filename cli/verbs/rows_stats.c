/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of tickets: reads per token, bytes read and useful, hot rows, times. */
#include "verbs/rows_stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/verbs.h"

static embla_status read_tokens(embla_tickets *tickets, const int64_t *rows, size_t tokens,
                                size_t columns, void *out)
{
    const embla_store_lookup_options lookup = {.rows_per_token = columns, .raw = true};
    for (size_t t = 0; t < tokens; t++) {
        const embla_ticket_request request = {
            .rows = rows + t * columns, .count = columns, .lookup = &lookup, .out = out};
        embla_ticket ticket;
        embla_status status = embla_ticket_submit(tickets, &request, &ticket);
        if (status == EMBLA_OK) status = embla_ticket_wait(tickets, ticket);
        if (status != EMBLA_OK) return status;
    }
    return EMBLA_OK;
}

/* Bytes of the table that are in the page cache; -1 means unknown. */
static int64_t cached_bytes(const embla_store *mapped)
{
    embla_store_info info;
    return mapped && embla_store_describe(mapped, &info) == EMBLA_OK ? info.resident : -1;
}

int cli_rows_stats_read(const embla_checkpoint *checkpoint, int32_t layer, const int64_t *rows,
                        size_t tokens, size_t columns, const embla_tickets_options *options,
                        cli_rows_stats *out)
{
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
    const embla_store_options in_cache = {.placement = EMBLA_PLACEMENT_MAPPED};
    embla_store *store = NULL, *mapped = NULL;
    embla_tickets *tickets = NULL;
    void *memory = NULL;
    if (embla_store_open(checkpoint, NULL, layer, &in_cache, &mapped) != EMBLA_OK) mapped = NULL;
    int64_t before = cached_bytes(mapped);
    embla_status status = embla_store_open(checkpoint, NULL, layer, &direct, &store);
    if (status == EMBLA_OK) status = embla_store_describe(store, &out->store);
    if (status == EMBLA_OK) status = embla_tickets_new(store, options, &tickets);
    if (status == EMBLA_OK) memory = malloc(columns * out->store.row_bytes);
    if (memory) status = read_tokens(tickets, rows, tokens, columns, memory);
    if (memory && status == EMBLA_OK) status = embla_tickets_describe(tickets, &out->tickets);
    int64_t after = cached_bytes(mapped);
    out->cached = before < 0 || after < 0 ? -1 : after > before ? after - before : 0;
    int code = status != EMBLA_OK ? cli_failed("%s", embla_error()) : CLI_DONE;
    if (code == CLI_DONE && !memory)
        code = cli_failed("no memory for %zu rows of %zu bytes", columns, out->store.row_bytes);
    free(memory);
    out->store.reader_why = NULL; /* it belongs to the store */
    embla_tickets_free(tickets);
    embla_store_free(store);
    embla_store_free(mapped);
    return code;
}

static double ratio(int64_t a, int64_t b)
{
    return b > 0 ? (double)a / (double)b : 0;
}

void cli_rows_stats_print(const cli_rows_stats *s)
{
    const embla_tickets_info *t = &s->tickets;
    char read[CLI_CELL], useful[CLI_CELL], most[CLI_CELL], hot[CLI_CELL];
    putchar('\n');
    cli_out_fact("reader", "%s, up to %d reads at once", embla_reader_name(s->store.reader),
                 s->store.depth);
    cli_out_fact("reads", "%" PRId64 ", %.2f per token", t->reads, ratio(t->reads, t->tokens));
    cli_out_fact("bytes", "%s read, %s useful: %.1f times as many", cli_commas(t->bytes_read, read),
                 cli_commas(t->bytes_useful, useful), ratio(t->bytes_read, t->bytes_useful));
    cli_out_fact("hot rows", "%" PRId64 " of %" PRId64 " (%.1f %%); %s bytes of memory", t->hot,
                 t->asked, 100 * ratio(t->hot, t->asked), cli_commas(t->hot_bytes, hot));
    if (t->bundled > 0)
        cli_out_fact("bundled", "%" PRId64 " of %" PRId64 " (%.1f %%)", t->bundled, t->asked,
                     100 * ratio(t->bundled, t->asked));
    cli_out_fact("time", "p50 %.3f ms, p99 %.3f ms per token; blocked for %.3f ms",
                 1e-6 * (double)t->p50, 1e-6 * (double)t->p99, 1e-6 * (double)t->blocked);
    cli_out_fact("in flight", "%s bytes at most", cli_commas(t->in_flight_max, most));
    if (s->cached >= 0) cli_out_fact("page cache", "grew by %s bytes", cli_commas(s->cached, most));
}

void cli_rows_stats_json(const cli_rows_stats *s, cli_json *json)
{
    const embla_tickets_info *t = &s->tickets;
    cli_json_open(json, "stats", '{');
    cli_json_text(json, "reader", embla_reader_name(s->store.reader));
    cli_json_whole(json, "depth", s->store.depth);
    cli_json_whole(json, "tokens", t->tokens);
    cli_json_whole(json, "rows", t->asked);
    cli_json_whole(json, "reads", t->reads);
    cli_json_real(json, "reads_per_token", ratio(t->reads, t->tokens));
    cli_json_whole(json, "bytes_read", t->bytes_read);
    cli_json_whole(json, "bytes_useful", t->bytes_useful);
    cli_json_real(json, "amplification", ratio(t->bytes_read, t->bytes_useful));
    cli_json_whole(json, "hot", t->hot);
    cli_json_whole(json, "hot_fixed", t->hot_fixed);
    cli_json_whole(json, "hot_rows", t->hot_rows);
    cli_json_real(json, "hit_rate", ratio(t->hot, t->asked));
    cli_json_whole(json, "hot_bytes", t->hot_bytes);
    cli_json_whole(json, "bundled", t->bundled);
    cli_json_whole(json, "p50_ns", t->p50);
    cli_json_whole(json, "p99_ns", t->p99);
    cli_json_whole(json, "blocked_ns", t->blocked);
    cli_json_whole(json, "in_flight_max", t->in_flight_max);
    cli_json_whole(json, "page_cache_growth", s->cached);
    cli_json_close(json, '}');
}
