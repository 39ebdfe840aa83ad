/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts as one. The tokens, type ids and texts of tokens below are those of Hugging Face's
 * tokenizers 0.23.3 for the same tokenizer.json and the same texts. */
#include <stdio.h>

#include "base/mem.h"
#include "check.h"
#include "embla_text.h"

#define NONE "null"
#define BERT "{\"type\":\"BertProcessing\",\"cls\":[\"[CLS]\",1],\"sep\":[\"[SEP]\",2]}"
#define ROBERTA                                                                                    \
    "{\"type\":\"RobertaProcessing\",\"cls\":[\"[CLS]\",1],\"sep\":[\"[SEP]\",2],"                 \
    "\"trim_offsets\":true,\"add_prefix_space\":false}"
#define CLS(type) "{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":" type "}}"
#define SEP(type) "{\"SpecialToken\":{\"id\":\"[SEP]\",\"type_id\":" type "}}"
#define A         "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define B         "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}"
#define TEMPLATE_OF(single, pair)                                                                  \
    "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair                     \
    "],\"special_tokens\":{\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[1]},\"[SEP]\":{\"id\":\"[SEP]\","  \
    "\"ids\":[2,2]}}}"
/* the second text comes first */
#define TEMPLATE TEMPLATE_OF(CLS("0") "," A, CLS("2") "," B "," SEP("3") "," A)
#define LIMIT(most, strategy, direction)                                                           \
    "{\"direction\":\"" direction "\",\"max_length\":" most ",\"strategy\":\"" strategy            \
    "\",\"stride\":0}"
#define PAD                                                                                        \
    "{\"strategy\":{\"Fixed\":12},\"direction\":\"Left\",\"pad_to_multiple_of\":null,\"pad_id\":"  \
    "3,"                                                                                           \
    "\"pad_type_id\":5,\"pad_token\":\"[PAD]\"}"

typedef struct {
    const char *post, *limit, *pad;
    bool special;
    const char *first, *second;
    const char *tokens, *types, *sides; /* a digit each; NULL means that it is refused */
} expectation;

static const expectation expectations[] = {
    {NONE, NULL, NULL, true, "a b c", "d e", "45678", "00011", "11122"},
    {NONE, NULL, NULL, true, "a b", "c d e f", "456789", "001111", "112222"},
    {NONE, NULL, NULL, false, "a b c", "d e", "45678", "00011", "11122"},
    {NONE, NULL, NULL, false, "a b", "c d e f", "456789", "001111", "112222"},
    {BERT, NULL, NULL, true, "a b c", "d e", "14562782", "00000111", "01110220"},
    {BERT, NULL, NULL, true, "a b", "c d e f", "145267892", "000011111", "011022220"},
    {BERT, NULL, NULL, false, "a b c", "d e", "45678", "00011", "11122"},
    {BERT, NULL, NULL, false, "a b", "c d e f", "456789", "001111", "112222"},
    {ROBERTA, NULL, NULL, true, "a b c", "d e", "145622782", "000000000", "011100220"},
    {ROBERTA, NULL, NULL, true, "a b", "c d e f", "1452267892", "0000000000", "0110022220"},
    {ROBERTA, NULL, NULL, false, "a b c", "d e", "45678", "00000", "11122"},
    {ROBERTA, NULL, NULL, false, "a b", "c d e f", "456789", "000000", "112222"},
    {TEMPLATE, NULL, NULL, true, "a b c", "d e", "17822456", "21133000", "02200111"},
    {TEMPLATE, NULL, NULL, true, "a b", "c d e f", "167892245", "211113300", "022220011"},
    {TEMPLATE, NULL, NULL, false, "a b c", "d e", "78456", "11000", "22111"},
    {TEMPLATE, NULL, NULL, false, "a b", "c d e f", "678945", "111100", "222211"},
    {BERT, LIMIT("8", "LongestFirst", "Right"), NULL, true, "a b c", "d e", "14562782", "00000111",
     "01110220"},
    {BERT, LIMIT("8", "LongestFirst", "Right"), NULL, true, "a b", "c d e f", "14526782",
     "00001111", "01102220"},
    {BERT, LIMIT("7", "LongestFirst", "Right"), NULL, true, "a b c", "d e", "1452782", "0000111",
     "0110220"},
    {BERT, LIMIT("7", "LongestFirst", "Right"), NULL, true, "a b", "c d e f", "1452672", "0000111",
     "0110220"},
    {BERT, LIMIT("5", "LongestFirst", "Right"), NULL, true, "a b c", "d e", "14272", "00011",
     "01020"},
    {BERT, LIMIT("5", "LongestFirst", "Right"), NULL, true, "a b", "c d e f", "14262", "00011",
     "01020"},
    {BERT, LIMIT("4", "LongestFirst", "Right"), NULL, true, "a b c", "d e", "1422", "0001", "0100"},
    {BERT, LIMIT("4", "LongestFirst", "Right"), NULL, true, "a b", "c d e f", "1262", "0011",
     "0020"},
    {BERT, LIMIT("8", "OnlyFirst", "Right"), NULL, true, "a b c", "d e", "14562782", "00000111",
     "01110220"},
    {BERT, LIMIT("8", "OnlyFirst", "Right"), NULL, true, "a b", "c d e f", "14267892", "00011111",
     "01022220"},
    {BERT, LIMIT("7", "OnlyFirst", "Right"), NULL, true, "a b c", "d e", "1452782", "0000111",
     "0110220"},
    {BERT, LIMIT("7", "OnlyFirst", "Right"), NULL, true, "a b", "c d e f", NULL, NULL, NULL},
    {BERT, LIMIT("5", "OnlyFirst", "Right"), NULL, true, "a b c", "d e", NULL, NULL, NULL},
    {BERT, LIMIT("5", "OnlyFirst", "Right"), NULL, true, "a b", "c d e f", NULL, NULL, NULL},
    {BERT, LIMIT("4", "OnlyFirst", "Right"), NULL, true, "a b c", "d e", NULL, NULL, NULL},
    {BERT, LIMIT("4", "OnlyFirst", "Right"), NULL, true, "a b", "c d e f", NULL, NULL, NULL},
    {BERT, LIMIT("8", "OnlySecond", "Right"), NULL, true, "a b c", "d e", "14562782", "00000111",
     "01110220"},
    {BERT, LIMIT("8", "OnlySecond", "Right"), NULL, true, "a b", "c d e f", "14526782", "00001111",
     "01102220"},
    {BERT, LIMIT("7", "OnlySecond", "Right"), NULL, true, "a b c", "d e", "1456272", "0000011",
     "0111020"},
    {BERT, LIMIT("7", "OnlySecond", "Right"), NULL, true, "a b", "c d e f", "1452672", "0000111",
     "0110220"},
    {BERT, LIMIT("5", "OnlySecond", "Right"), NULL, true, "a b c", "d e", NULL, NULL, NULL},
    {BERT, LIMIT("5", "OnlySecond", "Right"), NULL, true, "a b", "c d e f", NULL, NULL, NULL},
    {BERT, LIMIT("4", "OnlySecond", "Right"), NULL, true, "a b c", "d e", NULL, NULL, NULL},
    {BERT, LIMIT("4", "OnlySecond", "Right"), NULL, true, "a b", "c d e f", NULL, NULL, NULL},
    {BERT, LIMIT("7", "LongestFirst", "Left"), NULL, true, "a b c", "d e", "1562782", "0000111",
     "0110220"},
    {BERT, LIMIT("7", "LongestFirst", "Left"), NULL, true, "a b", "c d e f", "1452892", "0000111",
     "0110220"},
    {BERT, NULL, PAD, true, "a b c", "d e", "333314562782", "555500000111", "000001110220"},
    {BERT, NULL, PAD, true, "a b", "c d e f", "333145267892", "555000011111", "000011022220"}};

static embla_status parse(const char *post, const char *limit, const char *pad,
                          embla_tokenizer **out)
{
    char json[4096];
    (void)snprintf(json, sizeof json,
                   "{\"truncation\":%s,\"padding\":%s,\"added_tokens\":[],\"normalizer\":null,"
                   "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},\"post_processor\":%s,"
                   "\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"[UNK]\":0,"
                   "\"[CLS]\":1,\"[SEP]\":2,\"[PAD]\":3,\"a\":4,\"b\":5,\"c\":6,\"d\":7,\"e\":8,"
                   "\"f\":9},\"unk_token\":\"[UNK]\"}}",
                   limit ? limit : "null", pad ? pad : "null", post);
    return embla_tokenizer_open_bytes(json, strlen(json), "test", out);
}

static embla_tokenized *open_pair(const char *post, const char *limit, const char *pad,
                                  embla_tokenizer **t)
{
    embla_tokenized *e = NULL;
    assert_ok(parse(post, limit, pad, t));
    assert_ok(embla_tokenized_new(*t, &e));
    return e;
}

static embla_status encode(embla_tokenized *e, const char *first, const char *second,
                           const embla_tokenize_options *options)
{
    return embla_tokenize_pair(e, first, strlen(first), second, strlen(second), options);
}

static void pairs_are_those_of_the_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        const expectation *x = &expectations[i];
        embla_tokenizer *t = NULL;
        embla_tokenized *e = open_pair(x->post, x->limit, x->pad, &t);
        const embla_tokenize_options options = {
            .add_special = x->special, .truncate = true, .pad = true, .offsets = true};
        embla_status status = encode(e, x->first, x->second, &options);
        assert_int_equal(status, x->tokens ? EMBLA_OK : EMBLA_ERR_SHAPE);
        assert_int_equal(embla_tokenized_count(e), x->tokens ? strlen(x->tokens) : 0);
        for (size_t j = 0; j < embla_tokenized_count(e); j++) {
            assert_int_equal(embla_tokenized_tokens(e)[j], x->tokens[j] - '0');
            assert_int_equal(embla_tokenized_types(e)[j], x->types[j] - '0');
            assert_int_equal(embla_tokenized_sides(e)[j], x->sides[j] - '0');
            assert_int_equal(embla_tokenized_special(e)[j], x->sides[j] == '0');
            const embla_text_span span = embla_tokenized_offsets(e)[j];
            const char *text = x->sides[j] == '2' ? x->second : x->first;
            if (x->sides[j] == '0')
                assert_int_equal(span.end, 0);
            else /* letters are the tokens from 4 on */
                assert_int_equal(text[span.begin] - 'a' + 4, x->tokens[j] - '0');
        }
        embla_tokenized_free(e);
        embla_tokenizer_free(t);
    }
}

static void a_limit_of_the_caller_takes_from_the_longer_text(void **state)
{
    embla_tokenizer *t = NULL;
    embla_tokenized *e = open_pair(BERT, NULL, NULL, &t);
    const int32_t wanted[] = {1, 4, 5, 2, 8, 9, 2};
    (void)state;
    assert_ok(encode(e, "a b c d", "e f",
                     &(embla_tokenize_options){.add_special = true, .max_tokens = 7}));
    assert_int_equal(embla_tokenized_count(e), 7);
    assert_memory_equal(embla_tokenized_tokens(e), wanted, sizeof wanted);
    assert_int_equal(embla_tokenized_cut(e), 2);
    assert_status(
        encode(e, "a", "b", &(embla_tokenize_options){.add_special = true, .max_tokens = 2}),
        EMBLA_ERR_SHAPE);
    assert_error_has("no room for 3 special ones");
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

/* An embla_tokenized that had a long text before has room for tokens, but none for type ids. */
static void texts_and_pairs_may_alternate(void **state)
{
    char text[4001];
    embla_tokenizer *t = NULL;
    embla_tokenized *e = open_pair(BERT, NULL, NULL, &t);
    (void)state;
    for (size_t i = 0; i < 4000; i++) text[i] = i % 2 == 0 ? 'a' : ' ';
    text[4000] = '\0';
    assert_ok(embla_tokenize(e, text, 4000, NULL));
    assert_null(embla_tokenized_types(e));
    assert_null(embla_tokenized_sides(e));
    assert_ok(encode(e, text, "", NULL));
    assert_int_equal(embla_tokenized_count(e), 2000);
    assert_int_equal(embla_tokenized_sides(e)[1999], 1);
    assert_ok(encode(e, "", text, NULL));
    assert_int_equal(embla_tokenized_types(e)[1999], 1);
    assert_ok(encode(e, "", "", &(embla_tokenize_options){.add_special = true}));
    assert_int_equal(embla_tokenized_count(e), 3);
    assert_status(embla_tokenize_pair(e, NULL, 1, "a", 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_tokenize_pair(NULL, "a", 1, "a", 1, NULL), EMBLA_ERR_ARGUMENT);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

static void wrong_templates_are_refused(void **state)
{
    static const struct {
        const char *post, *sentence;
    } cases[] = {{TEMPLATE_OF(B, A), "names a second one"},
                 {TEMPLATE_OF(A, CLS("256") "," A), "type_id"},
                 {TEMPLATE_OF(A, "{\"Sequence\":{\"id\":\"C\"}}"), "names a second one"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_tokenizer *t = NULL;
        assert_status(parse(cases[i].post, NULL, NULL, &t), EMBLA_ERR_FORMAT);
        assert_error_has(cases[i].sentence);
    }
}

static void every_allocation_may_fail(void **state)
{
    embla_tokenizer *t = NULL;
    embla_status status = EMBLA_ERR_MEMORY;
    (void)state;
    assert_ok(parse(BERT, NULL, PAD, &t));
    for (size_t n = 1; status != EMBLA_OK; n++) {
        embla_tokenized *e = NULL;
        size_t live = embla_mem_live();
        embla_mem_fail(n, false);
        status = embla_tokenized_new(t, &e);
        if (status == EMBLA_OK)
            status = encode(
                e, "a b c", "d e",
                &(embla_tokenize_options){.add_special = true, .pad = true, .offsets = true});
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        embla_tokenized_free(e);
        assert_int_equal(embla_mem_live(), live);
        assert_true(n < 100);
    }
    embla_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_those_of_the_reference),
        cmocka_unit_test(a_limit_of_the_caller_takes_from_the_longer_text),
        cmocka_unit_test(texts_and_pairs_may_alternate),
        cmocka_unit_test(wrong_templates_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
