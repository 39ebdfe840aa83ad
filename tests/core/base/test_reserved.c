/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved words of public structs: one that is not 0 is refused in every call, and nothing is
 * written (docs/decisions/020-how-options-grow.md).
 */
#include "check.h"

#include "embla_lab.h"
#include "embla_learn.h"
#include "embla_store.h"
#include "embla_train.h"

/* Each word alone is enough. */
#define REFUSED(type, call)                                                                        \
    for (size_t word = 0; word < COUNT_OF(((type *)0)->reserved); word++) {                        \
        type options = {0};                                                                        \
        options.reserved[word] = (uint64_t)1 << (63 * (word % 2));                                 \
        assert_status(call, EMBLA_ERR_UNSUPPORTED);                                                \
        assert_error_has("a reserved field is not 0");                                             \
        assert_error_has(embla_version());                                                         \
    }

static void tables_and_lookups_refuse_them(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 4, 8, 1), *other = NULL;
    const int32_t tokens[2] = {1, 3};
    const int64_t rows[2] = {1, 3};
    float out[16] = {7};
    embla_rope *rope = NULL, *rotary = NULL;
    embla_scatter *scatter = NULL;
    embla_checkpoint *checkpoint = NULL;
    (void)state;
    assert_ok(embla_rope_new(8, NULL, &rotary));
    assert_ok(embla_scatter_new(4, 2, &scatter));
    REFUSED(embla_table_layout, embla_table_view(&options, out, sizeof out, NULL, &other));
    REFUSED(embla_table_options, embla_table_new(EMBLA_F32, 2, 2, &options, &other));
    REFUSED(embla_table_options,
            embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 2}, out,
                             sizeof out, &options, &other));
    REFUSED(embla_init_options, embla_table_init(table, &options));
    REFUSED(embla_lookup_options, embla_lookup(table, tokens, 2, &options, out));
    REFUSED(embla_lookup_options, embla_lookup_rows(table, rows, 2, &options, out));
    REFUSED(embla_embed_options, embla_embed(table, tokens, 1, 2, &options, out));
    REFUSED(embla_rope_options, embla_rope_new(8, &options, &rope));
    REFUSED(embla_pool_options, embla_pool(out, 1, 2, 8, &options, out));
    REFUSED(embla_pool_options, embla_lookup_pool(table, tokens, 1, 2, &options, out));
    REFUSED(embla_rope_layout, embla_rope_apply(rotary, rows, 1, 1, &options, out));
    REFUSED(embla_rope_layout, embla_rope_transpose(rotary, rows, 1, 1, &options, out));
    REFUSED(embla_open_options, embla_checkpoint_open("none", &options, &checkpoint));
    REFUSED(embla_scatter_options, embla_scatter_plan(scatter, tokens, 2, &options));
    REFUSED(embla_scatter_options, embla_scatter_plan_rows(scatter, rows, 2, &options));
    REFUSED(embla_frozen,
            embla_scatter_plan(scatter, tokens, 2, &(embla_scatter_options){.frozen = options}));
    assert_true(out[0] == 7.0f && !other && !rope && !checkpoint);
    embla_rope_free(rotary);
    embla_scatter_free(scatter);
    embla_table_free(table);
}

static void the_lab_refuses_them(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 4, 8, 1);
    embla_health *health = NULL;
    embla_diff *diff = NULL;
    embla_doctor *doctor = NULL;
    embla_graph *graph = NULL;
    embla_film *film = NULL;
    embla_communities *communities = NULL;
    embla_neighbour near[1];
    embla_sketch *sketch = NULL;
    embla_cost cost;
    const int64_t row = 1;
    const embla_analogy_question question = {.plus = &row, .plus_count = 1};
    float xy[8], query[8] = {1};
    double singular[8];
    embla_spectrum_report spectrum;
    (void)state;
    REFUSED(embla_cost_model, embla_cost_compute(&options, &cost));
    REFUSED(embla_near_options, embla_near(table, query, 1, &options, near, NULL));
    REFUSED(embla_sketch_options, embla_sketch_new(table, &options, &sketch));
    REFUSED(embla_analogy_options, embla_analogy(table, &question, &options, near, NULL));
    REFUSED(embla_analogy_question, embla_analogy(table, &options, NULL, near, NULL));
    REFUSED(embla_health_options, embla_health_new(table, &options, &health));
    REFUSED(embla_spectrum_options, embla_spectrum(table, &options, singular, &spectrum));
    REFUSED(embla_plane_options, embla_plane(table, &options, xy, NULL));
    REFUSED(embla_graph_options, embla_graph_new(table, &options, &graph));
    REFUSED(embla_film_options, embla_film_new(table, &options, &film));
    REFUSED(embla_layout_options, embla_layout(table, graph, &options, xy, NULL));
    REFUSED(embla_communities_options, embla_communities_new(graph, &options, &communities));
    REFUSED(embla_diff_options, embla_diff_new(table, table, &options, &diff));
    REFUSED(embla_doctor_options, embla_doctor_new(NULL, &options, &doctor));
    assert_true(!health && !diff && !doctor && !graph && !communities && !film);
    embla_table_free(table);
}

static void learning_refuses_them(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 4, 8, 1);
    const embla_head head = {.table = table};
    const embla_negatives negatives = {.negatives = 2};
    embla_choice choice;
    embla_optim *optim = NULL;
    embla_gpt *gpt = NULL;
    const int32_t target = 1;
    float hidden[8] = {1}, logits[4];
    double rate;
    (void)state;
    REFUSED(embla_head,
            (options.table = table, embla_head_logits(&options, hidden, 1, NULL, logits)));
    REFUSED(embla_head_options, embla_head_logits(&head, hidden, 1, &options, logits));
    REFUSED(embla_head_options, embla_head_top(&head, hidden, 1, 1, &options, &choice));
    REFUSED(embla_sample_options, embla_head_sample(&head, hidden, 1, &options, &choice));
    REFUSED(embla_loss_options,
            embla_head_loss(&head,
                            &(embla_loss_batch){.hidden = hidden, .targets = &target, .count = 1},
                            &options, NULL, NULL));
    REFUSED(embla_loss_gradients,
            embla_head_loss(&head,
                            &(embla_loss_batch){.hidden = hidden, .targets = &target, .count = 1},
                            NULL, &options, NULL));
    REFUSED(embla_loss_batch, embla_head_loss(&head, &options, NULL, NULL, NULL));
    REFUSED(embla_loss_batch, embla_sampled_loss(&head, &options, &negatives, NULL, NULL, NULL));
    REFUSED(embla_negatives,
            embla_sampled_loss(
                &head, &(embla_loss_batch){.hidden = hidden, .targets = &target, .count = 1},
                &options, NULL, NULL, NULL));
    REFUSED(embla_loss_options,
            embla_sampled_loss(
                &head, &(embla_loss_batch){.hidden = hidden, .targets = &target, .count = 1},
                &negatives, &options, NULL, NULL));
    REFUSED(embla_clip_options, embla_clip(NULL, 0, 1.0, &options, NULL));
    REFUSED(embla_schedule, embla_schedule_rate(&options, 0, &rate));
    REFUSED(embla_optim_options, embla_optim_new(table, &options, &optim));
    assert_true(!optim && !gpt);
    embla_table_free(table);
}

static void row_formats_refuse_them(void **state)
{
    static const char bytes[64];
    const embla_extent extent = {.file = "none", .rows = 1};
    embla_store *other = NULL;
    float out[8] = {7};
    char encoded[32];
    size_t count = 0;
    (void)state;
    REFUSED(embla_row_format,
            (options.dim = 8, options.dtype = EMBLA_F32, embla_row_bytes(&options, &count)));
    REFUSED(embla_row_format, (options.dim = 8, options.dtype = EMBLA_F32,
                               embla_row_decode(&options, bytes, 1, out)));
    REFUSED(embla_row_format, (options.dim = 8, options.dtype = EMBLA_F32,
                               embla_row_encode(&options, out, 1, encoded)));
    REFUSED(embla_row_format, (options.dim = 8, options.dtype = EMBLA_F32,
                               embla_store_open_extents(&options, &extent, 1, NULL, &other)));
    REFUSED(embla_row_format, (options.dim = 8, options.dtype = EMBLA_F32,
                               embla_store_view(&options, 2, bytes, sizeof bytes, 0, &other)));
    assert_true(!other && count == 0 && out[0] == 7.0f);
}

static void stores_refuse_them(void **state)
{
    static const char bytes[64];
    const embla_row_format format = {.dim = 8, .dtype = EMBLA_F32};
    const embla_extent extent = {.file = "none", .rows = 1};
    const embla_ngram_parameters identity = {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 4};
    const int64_t row = 0;
    const int32_t token = 1;
    embla_store *store = NULL, *other = NULL;
    embla_ngram *ngram = NULL, *hasher = NULL;
    embla_frequent *frequent = NULL;
    float out[8];
    int64_t rows[1];
    (void)state;
    assert_ok(embla_store_view(&format, 2, bytes, sizeof bytes, 0, &store));
    assert_ok(embla_ngram_new(&identity, &hasher));
    REFUSED(embla_store_options, embla_store_open_extents(&format, &extent, 1, &options, &other));
    REFUSED(embla_extent, embla_store_open_extents(&format, &options, 1, NULL, &other));
    REFUSED(embla_store_options, embla_store_warm(store, &options));
    embla_store_options with = {0};
    REFUSED(embla_store_engine_options,
            (with.engine = &options, embla_store_open_extents(&format, &extent, 1, &with, &other)));
    REFUSED(embla_store_lookup_options, embla_store_lookup(store, &row, 1, &options, out));
    REFUSED(embla_ngram_parameters, embla_ngram_new(&options, &ngram));
    REFUSED(embla_ngram_options, embla_ngram_rows(hasher, &token, 1, 1, &options, rows));
    REFUSED(embla_frequent_options, embla_frequent_new(&options, &frequent));
    REFUSED(embla_pack_options, embla_pack_write(store, "none", &options, NULL));
    assert_true(!other && !ngram && !frequent);
    embla_ngram_free(hasher);
    embla_store_free(store);
}

static void batches_and_tickets_refuse_them(void **state)
{
    static const char bytes[64];
    const embla_row_format format = {.dim = 8, .dtype = EMBLA_F32};
    const int64_t row = 0;
    float out[8] = {7};
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    embla_tickets *tickets = NULL, *none = NULL;
    embla_ticket ticket = 0;
    (void)state;
    assert_ok(embla_store_view(&format, 2, bytes, sizeof bytes, 0, &store));
    assert_ok(embla_batch_new(store, 4, &batch));
    assert_ok(embla_tickets_new(store, NULL, &tickets));
    REFUSED(embla_store_lookup_options, embla_batch_lookup(batch, &row, 1, &options, out));
    REFUSED(embla_tickets_options, embla_tickets_new(store, &options, &none));
    REFUSED(embla_ticket_request, (options.rows = &row, options.count = 1, options.out = out,
                                   embla_ticket_submit(tickets, &options, &ticket)));
    REFUSED(embla_ticket_request, embla_tickets_prefetch(tickets, &options));
    embla_ticket_request request = {.rows = &row, .count = 1, .out = out};
    REFUSED(embla_store_lookup_options,
            (request.lookup = &options, embla_ticket_submit(tickets, &request, &ticket)));
    assert_true(!none && ticket == 0 && out[0] == 7.0f);
    embla_tickets_free(tickets);
    embla_batch_free(batch);
    embla_store_free(store);
}

static void texts_refuse_them(void **state)
{
    static const char words[] = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\","
                                "\"vocab\":{\"a\":0}}}";
    embla_tokenizer *tokenizer = NULL;
    embla_tokenized *tokenized = NULL;
    embla_encoder *encoder = NULL;
    const char *const texts[1] = {"a"};
    const size_t lengths[1] = {1};
    const embla_texts one = {.texts = texts, .lengths = lengths, .count = 1};
    (void)state;
    assert_ok(embla_tokenizer_open_bytes(words, sizeof words - 1, "words", &tokenizer));
    assert_ok(embla_tokenized_new(tokenizer, &tokenized));
    REFUSED(embla_tokenize_options, embla_tokenize(tokenized, "a", 1, &options));
    REFUSED(embla_tokenize_options, embla_tokenize_pair(tokenized, "a", 1, "a", 1, &options));
    REFUSED(embla_tokenize_options, embla_tokenize_batch(tokenized, &one, &options));
    REFUSED(embla_texts, embla_tokenize_batch(tokenized, &options, NULL));
    REFUSED(embla_encoder_options, embla_encoder_open("none", &options, &encoder));
    assert_null(encoder);
    embla_tokenized_free(tokenized);
    embla_tokenizer_free(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_and_lookups_refuse_them),
                                       cmocka_unit_test(the_lab_refuses_them),
                                       cmocka_unit_test(learning_refuses_them),
                                       cmocka_unit_test(stores_refuse_them),
                                       cmocka_unit_test(row_formats_refuse_them),
                                       cmocka_unit_test(batches_and_tickets_refuse_them),
                                       cmocka_unit_test(texts_refuse_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
