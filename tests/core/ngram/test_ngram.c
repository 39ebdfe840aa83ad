/* SPDX-License-Identifier: Apache-2.0 */
/* N-gram hashers: row numbers, constants and digests of an oracle that was written apart from
 * the library; then what must hold between calls: history, batches, barriers, threads.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "ngram/ngram.h"

/* ---- what the oracle says: tokens x columns ---- */

static const int64_t v41_multipliers[2][4] = {
    {76632096046245, 4839876093313, 35959672319349, 73987337458391},
    {67716810739261, 51510806800915, 30921347202721, 82619226485591}};
static const int64_t v41_layer_1[] = {
    5412672,   18319159,  35492627,  60880252,  74962984,  95657733,  98005115,  127351390,
    143494632, 151789366, 171410756, 185435171, 207165545, 218031260, 226330336, 247008214,
    256353435, 276423911, 295874085, 305599364, 322749888, 348475788, 367405771, 372009279,
    4465417,   19956422,  46092342,  63180250,  72817007,  81363961,  101637819, 115073099,
    129505115, 156470463, 174907856, 184508640, 199146468, 222468035, 233452922, 241999173,
    269486139, 283538549, 289842460, 316995539, 324430859, 351584542, 358228516, 371977877,
    379248,    18191193,  40143441,  48303286,  65018668,  94184119,  102190568, 114357284,
    141971515, 148328099, 170128869, 184338629, 202869581, 208948308, 226083122, 245587010,
    256931896, 284740145, 295905390, 312691603, 330402322, 350747865, 363858451, 373952454,
    11738160,  23620665,  43700001,  60873512,  64432073,  82097965,  107020968, 127614195,
    135599064, 158317525, 170641955, 191662395, 206638243, 214934571, 228389565, 245026344,
    263356187, 281280287, 299041966, 316124950, 327588402, 344895774, 361633050, 378717148,
    14090801,  27354391,  40196623,  62934266,  73041185,  92410439,  102095098, 119154121,
    129782566, 151049993, 164112195, 184155471, 203942373, 219848928, 227224677, 249864024,
    271072342, 275832056, 288499991, 304337863, 326120309, 343628973, 355126860, 370313386,
};
static const int64_t v41_layer_14[] = {
    6939818,   27264717,  45254833,  51915000,  79245924,  86868470,  108849060, 119840903,
    131576092, 148509516, 175704205, 177570039, 200101533, 208499118, 238497982, 243164617,
    268363546, 274011563, 290850399, 314068096, 324530373, 351836884, 354242998, 382274687,
    14916957,  17590842,  36801443,  54942898,  72014147,  88633092,  98302170,  119142664,
    137631961, 145833376, 164250299, 180654289, 206068204, 215888121, 226928633, 251945259,
    261903157, 285085954, 292451961, 316181871, 323190394, 337578066, 361490123, 369044835,
    4638160,   20030499,  39019663,  50538662,  65556331,  93556986,  111429532, 113837035,
    128337784, 158306615, 166270104, 183866395, 196055012, 210820288, 235831227, 243983564,
    267442687, 278654168, 290224968, 307471870, 328183429, 336787734, 359702924, 381418250,
    13474695,  28825723,  39710019,  55489684,  72336762,  95039199,  108363365, 118403621,
    132806965, 153394520, 172874513, 186354229, 206555419, 221152653, 236852322, 250059415,
    262387460, 280328541, 299658268, 317192236, 329760642, 336677320, 363466949, 371800352,
    15984526,  27343958,  37775323,  50063154,  64207351,  83438249,  98735665,  122385522,
    128167325, 154418305, 172885530, 179970619, 199784060, 218437247, 234758504, 244986153,
    261615346, 278375846, 298548969, 313201784, 320961719, 349910087, 363094743, 382450906,
};
static const int64_t v41_image[] = {
    5412672,   18319159,  35492627,  60880252,  74962984,  95657733,  98005115,  127351390,
    143494632, 151789366, 171410756, 185435171, 207165545, 218031260, 226330336, 247008214,
    256353435, 276423911, 295874085, 305599364, 322749888, 348475788, 367405771, 372009279,
    4299726,   29253038,  43157972,  58397134,  65256332,  88876378,  100686433, 112312540,
    129401291, 144510675, 170979806, 184903880, 199719089, 215127204, 230239700, 250883315,
    264341430, 275127613, 298781502, 318608685, 331826823, 351654054, 365224186, 370096053,
    2008568,   17698461,  32185018,  60619676,  67746795,  83049331,  108124504, 125647891,
    134138602, 149921499, 175594870, 190467757, 200235717, 217933525, 228496905, 253556857,
    264495124, 282247979, 292825747, 317318376, 329499757, 341551263, 366133900, 370110214,
    11738160,  23620665,  43700001,  60873512,  64432073,  82097965,  107020968, 127614195,
    130918004, 157935611, 169437762, 189827780, 199874670, 221707564, 239468090, 245231905,
    264205779, 276788897, 302169360, 307061625, 326398434, 347515802, 367053582, 383634854,
    14090801,  27354391,  40196623,  62934266,  73041185,  92410439,  102095098, 119154121,
    129782566, 151049993, 164112195, 184155471, 203942373, 219848928, 227224677, 249864024,
    267530804, 287197806, 297264600, 319801588, 324716054, 348923266, 360169629, 371877639,
};
static const int64_t qwen_rows[] = {
    5727835,   21884476,  43702108,  66434789,  84094509,  104112171, 134886528, 157314943,
    162363667, 189466439, 200618315, 232121522, 258547276, 266199001, 289022207, 305180972,
    6669481,   25231135,  54517055,  75522994,  90676203,  102395039, 139974376, 143415227,
    164675732, 199178354, 201246635, 232214480, 253236281, 274617176, 281823939, 318456244,
    6129193,   20484628,  57667260,  77728366,  86357215,  109234597, 123551585, 149309416,
    172664702, 184433127, 201501905, 227445817, 243341740, 279238932, 284538191, 311036336,
    3325485,   35913088,  46614178,  66531866,  88187750,  116346661, 129466393, 148604753,
    167208810, 185568855, 202335181, 230535443, 240819283, 272160788, 289509680, 318016177,
    5871033,   30917552,  57175113,  62118027,  93095651,  110884860, 128315498, 146283787,
    164342091, 188641148, 219861821, 228741660, 243778650, 260043018, 285737385, 316254055,
    10748886,  21034810,  46189315,  61418497,  91626967,  101698917, 136809215, 156960499,
    171569641, 199252284, 210022337, 231517050, 259111622, 267063485, 289793697, 304039692,
};
static const int64_t longcat_rows[] = {
    11,       10223628,  20447247,  30670868, 40894491,  51118116,  61341743, 71565372,  81789003,
    92012636, 102236271, 112459908, 1442315,  11665932,  21889551,  32113172, 42336795,  52560420,
    62784047, 73007676,  83231307,  93454940, 103678575, 113902212, 7208956,  17432561,  27656168,
    37879777, 42956287,  53142930,  63329575, 73516222,  83702871,  93889522, 104076175, 114262830,
    44,       10223661,  20447280,  30670901, 40894524,  51118149,  61341776, 71565405,  81789036,
    92012669, 102236304, 112459941, 5897168,  16120785,  26344404,  36568025, 46791648,  57015273,
    67238900, 77462529,  87686160,  97909793, 108133428, 118357065,
};
static const int64_t longcat_zero[] = {
    11,       10223628,  20447247,  30670868, 40894491,  51118116,  61341743, 71565372,  81789003,
    92012636, 102236271, 112459908, 1442315,  11665932,  21889551,  32113172, 42336795,  52560420,
    62784047, 73007676,  83231307,  93454940, 103678575, 113902212, 0,        10223617,  20447236,
    30670857, 40894480,  51118105,  61341732, 71565361,  81788992,  92012625, 102236260, 112459897,
    44,       10223661,  20447280,  30670901, 40894524,  51118149,  61341776, 71565405,  81789036,
    92012669, 102236304, 112459941, 5897168,  16120785,  26344404,  36568025, 46791648,  57015273,
    67238900, 77462529,  87686160,  97909793, 108133428, 118357065,
};

/* ---- helpers ---- */

static embla_ngram *named(const char *name, int32_t layer)
{
    embla_ngram *g = NULL;
    assert_ok(embla_ngram_new_model(name, layer, NULL, &g));
    return g;
}

static embla_ngram *longcat(embla_ngram_eos rule)
{
    embla_ngram *g = NULL;
    const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_LONGCAT,
                                      .vocab = 131072,
                                      .orders = 4,
                                      .rows_per_ngram = 4,
                                      .ratio = 78,
                                      .eos = 2,
                                      .eos_rule = rule};
    assert_ok(embla_ngram_new(&p, &g));
    return g;
}

static size_t columns(const embla_ngram *g)
{
    embla_ngram_info info;
    assert_ok(embla_ngram_describe(g, &info));
    return info.rows_per_token;
}

static void same_rows(const int64_t *got, const int64_t *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (got[i] != want[i])
            fail_msg("number %zu is %" PRId64 ", not %" PRId64, i, got[i], want[i]);
}

static void gives(const embla_ngram *g, const int32_t *tokens, size_t n, const uint8_t *barrier,
                  const int64_t *want)
{
    int64_t got[6 * 24];
    const embla_ngram_options options = {.barrier = barrier};
    assert_true(n * columns(g) <= COUNT_OF(got));
    assert_ok(embla_ngram_rows(g, tokens, 1, n, &options, got));
    same_rows(got, want, n * columns(g));
}

/* The oracle's tokens: splitmix64(i) mod vocab, every 97th EOS. */
static void bulk_tokens(size_t n, uint64_t vocab, int32_t eos, int32_t *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t state = i;
        out[i] = eos >= 0 && i % 97 == 96 ? eos : (int32_t)(check_next(&state) % vocab);
    }
}

static uint64_t digest(const int64_t *rows, size_t n)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < n; i++)
        for (int b = 0; b < 8; b++)
            h = (h ^ ((uint64_t)rows[i] >> (8 * b) & 255)) * UINT64_C(0x100000001B3);
    return h;
}

/* ---- constants ---- */

static void numpy_says_what_its_generator_gives(void **state)
{
    uint64_t x[3];
    (void)state;
    embla_ngram_numpy(0, 1, x);
    assert_true((double)(x[0] >> 11) * 0x1p-53 == 0.6369616873214543);
    embla_ngram_numpy(42, 3, x);
    assert_true((double)(x[0] >> 11) * 0x1p-53 == 0.7739560485559633);
    assert_true((double)(x[1] >> 11) * 0x1p-53 == 0.4388784397520523);
    assert_true((double)(x[2] >> 11) * 0x1p-53 == 0.8585979199113825);
    embla_ngram_numpy(UINT64_C(123456789012345), 1, x); /* a seed of two words */
    assert_true((double)(x[0] >> 11) * 0x1p-53 == 0.5300069678854166);
}

static void multipliers_of_known_models_are_those_of_the_rules(void **state)
{
    static const int32_t layers[] = {1, 14};
    int64_t derived[4];
    embla_ngram_info info;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        embla_ngram *g = named("deepseek-v4.1-flash", layers[i]);
        assert_ok(embla_ngram_describe(g, &info));
        embla_ngram_engram_multipliers(99092, 10007 * (uint64_t)layers[i], 4, derived);
        same_rows(info.multipliers, derived, 4);
        same_rows(info.multipliers, v41_multipliers[i], 4);
        embla_ngram_free(g);
    }
    embla_ngram *g = named("qwen3.8-flash-next", -1);
    assert_ok(embla_ngram_describe(g, &info));
    embla_ngram_qwen_multipliers(248320, 1234, 3, derived);
    same_rows(info.multipliers, derived, 3);
    same_rows(derived, (const int64_t[]){23703573157769, 20109073645365, 8052911324071}, 3);
    embla_ngram_free(g);
}

static void sizes_and_row_counts_come_from_the_base_alone(void **state)
{
    static const int32_t v41[] = {1, 14}, demo[] = {1, 15};
    static const struct {
        embla_ngram_parameters p;
        int64_t rows, used, first, last;
    } cases[] = {
        {{.kind = EMBLA_NGRAM_ENGRAM,
          .vocab = 99092,
          .orders = 4,
          .rows_per_ngram = 8,
          .base = 16000000,
          .layers = v41,
          .layer_count = 2,
          .layer = 1},
         384006168,
         384006168,
         16000057,
         16000463},
        {{.kind = EMBLA_NGRAM_ENGRAM,
          .vocab = 99092,
          .orders = 4,
          .rows_per_ngram = 8,
          .base = 16000000,
          .layers = v41,
          .layer_count = 2,
          .layer = 14},
         384016682,
         384016682,
         16000477,
         16000889},
        {{.kind = EMBLA_NGRAM_ENGRAM,
          .vocab = 1000,
          .orders = 3,
          .rows_per_ngram = 8,
          .base = 646400,
          .layers = demo,
          .layer_count = 2,
          .layer = 1},
         10344164,
         10344164,
         646403,
         646619},
        {{.kind = EMBLA_NGRAM_ENGRAM,
          .vocab = 1000,
          .orders = 3,
          .rows_per_ngram = 8,
          .base = 646400,
          .layers = demo,
          .layer_count = 2,
          .layer = 15},
         10348242,
         10348242,
         646631,
         646879},
        {{.kind = EMBLA_NGRAM_QWEN,
          .vocab = 248320,
          .orders = 3,
          .rows_per_ngram = 8,
          .base = 20000000,
          .eos = 248044,
          .seed = 1234,
          .multiple = 128},
         320001536,
         320001446,
         20000003,
         20000171},
        {{.kind = EMBLA_NGRAM_LONGCAT,
          .vocab = 131072,
          .orders = 4,
          .rows_per_ngram = 4,
          .ratio = 78,
          .eos = 2},
         122683536,
         122683536,
         10223617,
         10223639},
        {{.kind = EMBLA_NGRAM_IDENTITY, .vocab = 1000, .multiple = 64}, 1024, 1000, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_ngram *g = NULL;
        embla_ngram_info info;
        assert_ok(embla_ngram_new(&cases[i].p, &g));
        assert_ok(embla_ngram_describe(g, &info));
        assert_int_equal(info.rows, cases[i].rows);
        assert_int_equal(info.used, cases[i].used);
        assert_int_equal(info.kind, cases[i].p.kind);
        assert_int_equal(info.tokens, cases[i].p.vocab);
        if (info.kind == EMBLA_NGRAM_IDENTITY) {
            assert_int_equal(info.rows_per_token, 1);
            assert_int_equal(info.history, 0);
            assert_null(info.sizes);
        } else {
            assert_int_equal(info.rows_per_token, (info.orders - 1) * info.rows_per_ngram);
            assert_int_equal(info.history, info.orders - 1);
            assert_int_equal(info.sizes[0], cases[i].first);
            assert_int_equal(info.sizes[info.rows_per_token - 1], cases[i].last);
            assert_int_equal(info.offsets[0], 0);
            for (size_t c = 1; c < info.rows_per_token; c++)
                assert_int_equal(info.offsets[c], info.offsets[c - 1] + info.sizes[c - 1]);
        }
        embla_ngram_free(g);
    }
}

static void primes_are_those_of_trial_division(void **state)
{
    static const int64_t bases[] = {
        1, 2, 3, 4, 90, 561, 3215031751 - 40, 1099511627700, 341550071728321 % 1099511627776 - 100};
    (void)state;
    for (size_t b = 0; b < COUNT_OF(bases); b++) {
        int64_t found[12], at = bases[b] - 1;
        assert_ok(embla_ngram_primes(bases[b], 3, 9, found));
        for (size_t i = 0; i < 12; i++) {
            bool prime = false;
            while (!prime) {
                at++;
                prime = at > 1;
                for (int64_t d = 2; d * d <= at && prime; d++) prime = at % d != 0;
            }
            if (i >= 3) assert_int_equal(found[i - 3], at);
        }
    }
    int64_t untouched = 7;
    assert_status(embla_ngram_primes(0, 0, 1, &untouched), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ngram_primes(((int64_t)1 << 40) + 1, 0, 1, &untouched), EMBLA_ERR_ARGUMENT);
    assert_int_equal(untouched, 7);
}

/* 3215031751 passes for a prime with the bases 2, 3, 5, 7; 3825123056546413051 is too large. */
static void strong_pseudoprimes_are_no_primes(void **state)
{
    static const int64_t not_primes[] = {
        2047, 1373653, 25326001, 3215031751, 2152302898747 / 2, 1122004669633, 1018264646281};
    int64_t found;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(not_primes); i++) {
        if (not_primes[i] > (int64_t)1 << 40) continue;
        assert_ok(embla_ngram_primes(not_primes[i], 0, 1, &found));
        assert_true(found > not_primes[i]);
    }
}

static void a_ratio_that_is_no_whole_number_is_cut_at_the_size(void **state)
{
    embla_ngram *g = NULL;
    embla_ngram_info info;
    const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_LONGCAT,
                                      .vocab = 163840,
                                      .orders = 5,
                                      .rows_per_ngram = 4,
                                      .ratio = 100.567,
                                      .eos = -1};
    (void)state;
    assert_ok(embla_ngram_new(&p, &g));
    assert_ok(embla_ngram_describe(g, &info));
    assert_int_equal(info.sizes[0], 16476898); /* 16476897.28 + 1 */
    assert_int_equal(info.sizes[15], 16476928);
    assert_int_equal(info.eos, -1);
    embla_ngram_free(g);
}

/* ---- golden rows ---- */

static const int32_t v41_tokens[] = {5, 17, 99091, 0, 2};
static const int32_t qwen_tokens[] = {100, 200, 300, 248044, 400, 500};
static const int32_t longcat_tokens[] = {11, 523, 2, 44, 130000};

static void golden_rows_of_engram(void **state)
{
    static const uint8_t image[5] = {0, 9, 0, 0, 0};
    (void)state;
    embla_ngram *g = named("deepseek-v4.1-flash", -1);
    gives(g, v41_tokens, 5, NULL, v41_layer_1);
    gives(g, v41_tokens, 5, image, v41_image);
    embla_ngram_free(g);
    g = named("deepseek-v4.1-flash", 14);
    gives(g, v41_tokens, 5, NULL, v41_layer_14);
    embla_ngram_free(g);
}

static void golden_rows_of_qwen(void **state)
{
    static const uint8_t padding[6] = {0, 0, 0, 1, 0, 0};
    static const int32_t other[] = {100, 200, 300, -7, 400, 500};
    (void)state;
    embla_ngram *g = named("qwen3.8-flash-next", 1);
    gives(g, qwen_tokens, 6, NULL, qwen_rows);
    gives(g, other, 6, padding, qwen_rows); /* a barrier is an EOS, whatever stands there */
    embla_ngram_free(g);
}

static void golden_rows_of_longcat(void **state)
{
    static const uint8_t wall[5] = {0, 0, 1, 0, 0};
    static const int32_t other[] = {11, 523, 9, 44, 130000};
    (void)state;
    embla_ngram *g = named("longcat-flash-lite", -1);
    gives(g, longcat_tokens, 5, NULL, longcat_rows);
    gives(g, other, 5, wall, longcat_rows);
    embla_ngram_free(g);
    g = longcat(EMBLA_NGRAM_EOS_ZERO);
    gives(g, longcat_tokens, 5, NULL, longcat_zero);
    gives(g, other, 5, wall, longcat_zero);
    embla_ngram_free(g);
}

/* mlx-lm: EOS is a token like any other, so 2 and what is before it count at 3. By hand. */
static void longcat_without_an_eos_rule_goes_on_across_it(void **state)
{
    int64_t got[5 * 12];
    embla_ngram_info info;
    (void)state;
    embla_ngram *g = longcat(EMBLA_NGRAM_EOS_IGNORED);
    assert_ok(embla_ngram_describe(g, &info));
    assert_ok(embla_ngram_rows(g, longcat_tokens, 1, 5, NULL, got));
    for (int64_t t = 0; t < 5; t++)
        for (size_t c = 0; c < 12; c++) {
            uint64_t sum = 0, power = 1, size = (uint64_t)info.sizes[c];
            for (int64_t s = 0; s < (int64_t)c / 4 + 2 && s <= t; s++) {
                sum += (uint64_t)longcat_tokens[t - s] * power;
                power = power * 131072 % size;
            }
            assert_int_equal(got[t * 12 + (int64_t)c], info.offsets[c] + (int64_t)(sum % size));
        }
    embla_ngram_free(g);
}

static void identity_is_the_token_and_a_barrier_the_pad(void **state)
{
    static const int32_t tokens[] = {0, 5, 262143, 262144};
    static const uint8_t barrier[] = {0, 0, 0, 1};
    int64_t got[4] = {7, 7, 7, 7};
    const embla_ngram_options options = {.barrier = barrier};
    (void)state;
    embla_ngram *g = named("gemma-4-e2b", -1);
    assert_status(embla_ngram_rows(g, tokens, 1, 4, NULL, got), EMBLA_ERR_RANGE);
    assert_int_equal(got[0], 7);
    assert_ok(embla_ngram_rows(g, tokens, 1, 4, &options, got));
    same_rows(got, (const int64_t[]){0, 5, 262143, 0}, 4);
    embla_ngram_free(g);
}

/* ---- digests ---- */

static void digests_are_the_oracles(void **state)
{
    enum { MANY = 1000000 };
    static const struct {
        const char *name;
        int32_t layer, eos;
        uint64_t vocab, short_digest, long_digest;
    } cases[] = {
        {"deepseek-v4.1-flash", 1, -1, 99092, UINT64_C(0x4fe6eac6ad0c14c4),
         UINT64_C(0x948b709748093b17)},
        {"deepseek-v4.1-flash", 14, -1, 99092, UINT64_C(0x225230cf4b90f8ed),
         UINT64_C(0x539aed026e4c1921)},
        {"qwen3.8-flash-next", -1, 248044, 248320, UINT64_C(0x5e336d1427981668),
         UINT64_C(0xc2d8ab88fd2bbd5c)},
        {"longcat-flash-lite", -1, 2, 131072, UINT64_C(0xb6f359e13225dfa7),
         UINT64_C(0xff6e5964dd43ec93)},
        {NULL, -1, 2, 131072, UINT64_C(0xffc724e3326f54b3), UINT64_C(0x2b9c22c9f3874064)},
    };
    int32_t *tokens = malloc(MANY * sizeof *tokens);
    int64_t *rows = malloc((size_t)MANY * 24 * sizeof *rows);
    (void)state;
    assert_non_null(tokens);
    assert_non_null(rows);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_ngram *g =
            cases[i].name ? named(cases[i].name, cases[i].layer) : longcat(EMBLA_NGRAM_EOS_ZERO);
        bulk_tokens(MANY, cases[i].vocab, cases[i].eos, tokens);
        assert_ok(embla_ngram_rows(g, tokens, 1, 4096, NULL, rows));
        assert_true(digest(rows, 4096 * columns(g)) == cases[i].short_digest);
        assert_ok(embla_ngram_rows(g, tokens, 1, MANY, NULL, rows));
        assert_true(digest(rows, MANY * columns(g)) == cases[i].long_digest);
        embla_ngram_free(g);
    }
    free(tokens);
    free(rows);
}

/* ---- sequences, history, batches, threads ---- */

/* All kinds, with vocabularies small enough that EOS and pad come often. */
enum { SMALL = 5 };

static embla_ngram *small_one(size_t n)
{
    static const embla_ngram_parameters kinds[SMALL] = {
        {.kind = EMBLA_NGRAM_ENGRAM,
         .vocab = 11,
         .orders = 4,
         .rows_per_ngram = 3,
         .base = 100,
         .layer = 3,
         .pad = 4},
        {.kind = EMBLA_NGRAM_QWEN,
         .vocab = 11,
         .orders = 3,
         .rows_per_ngram = 8,
         .base = 20000,
         .seed = 9,
         .eos = 2},
        {.kind = EMBLA_NGRAM_LONGCAT,
         .vocab = 11,
         .orders = 8,
         .rows_per_ngram = 2,
         .ratio = 3000.5,
         .eos = 2},
        {.kind = EMBLA_NGRAM_LONGCAT,
         .vocab = 11,
         .orders = 2,
         .rows_per_ngram = 5,
         .ratio = 3,
         .eos = 2,
         .eos_rule = EMBLA_NGRAM_EOS_ZERO},
        {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 11},
    };
    embla_ngram *g = NULL;
    assert_ok(embla_ngram_new(&kinds[n], &g));
    return g;
}

enum { LONG = 700, MOST_COLUMNS = 16 }; /* several tiles */

static void random_tokens(uint64_t seed, size_t n, int32_t *tokens, uint8_t *barrier)
{
    for (size_t i = 0; i < n; i++) {
        tokens[i] = (int32_t)check_below(&seed, 11);
        barrier[i] = check_below(&seed, 7) == 0;
    }
}

static void token_by_token_with_history_is_the_whole(void **state)
{
    static int32_t tokens[LONG];
    static uint8_t barrier[LONG];
    static int64_t whole[LONG * MOST_COLUMNS], one[MOST_COLUMNS];
    int32_t history[8];
    embla_ngram_info info;
    (void)state;
    random_tokens(1, LONG, tokens, barrier);
    for (size_t kind = 0; kind < SMALL; kind++) {
        embla_ngram *g = small_one(kind);
        assert_ok(embla_ngram_describe(g, &info));
        assert_ok(embla_ngram_rows(g, tokens, 1, LONG, NULL, whole));
        for (size_t t = 0; t < LONG; t++) {
            for (size_t i = 0; i < info.history; i++)
                history[i] = t + i >= info.history ? tokens[t + i - info.history] : -1;
            const embla_ngram_options options = {.history = history};
            assert_ok(embla_ngram_rows(g, &tokens[t], 1, 1, &options, one));
            same_rows(one, whole + t * info.rows_per_token, info.rows_per_token);
        }
        embla_ngram_free(g);
    }
}

/* What is before a barrier or a -1 may be anything. */
static void nothing_passes_a_barrier_or_a_start(void **state)
{
    int32_t a[] = {1, 5, 9, 3, 8, 10, 7, 1}, b[] = {6, 3, 10, 3, 8, 10, 7, 1};
    uint8_t wall[] = {0, 0, 1, 0, 0, 0, 0, 0};
    int64_t x[8 * MOST_COLUMNS], y[8 * MOST_COLUMNS];
    embla_ngram_info info;
    (void)state;
    for (size_t kind = 0; kind < SMALL; kind++) {
        embla_ngram *g = small_one(kind);
        assert_ok(embla_ngram_describe(g, &info));
        const embla_ngram_options options = {.barrier = wall};
        assert_ok(embla_ngram_rows(g, a, 1, 8, &options, x));
        assert_ok(embla_ngram_rows(g, b, 1, 8, &options, y));
        same_rows(x + 3 * info.rows_per_token, y + 3 * info.rows_per_token,
                  5 * info.rows_per_token);
        assert_ok(embla_ngram_rows(g, a + 3, 1, 5, NULL, y)); /* as at a start */
        same_rows(x + 3 * info.rows_per_token, y, 5 * info.rows_per_token);
        int32_t history[8] = {7, 7, 7, 7, 7, 7, 7, 7}; /* neither pad nor EOS */
        if (info.history > 0) history[info.history - 1] = -1;
        const embla_ngram_options ended = {.history = history};
        assert_ok(embla_ngram_rows(g, a + 3, 1, 5, &ended, x));
        same_rows(x, y, 5 * info.rows_per_token);
        embla_ngram_free(g);
    }
}

/* A window of each token, by the words of the header: the slow way. */
static void load_is_what_the_header_says(void **state)
{
    static int32_t tokens[LONG];
    static uint8_t barrier[LONG];
    static int64_t got[LONG * MOST_COLUMNS];
    embla_ngram_info info;
    (void)state;
    random_tokens(2, LONG, tokens, barrier);
    for (size_t kind = 0; kind < 2; kind++) { /* engram, qwen */
        embla_ngram *g = small_one(kind);
        assert_ok(embla_ngram_describe(g, &info));
        int64_t filler = kind == 0 ? info.pad : info.eos;
        const embla_ngram_options options = {.barrier = barrier};
        assert_ok(embla_ngram_rows(g, tokens, 1, LONG, &options, got));
        for (size_t t = 0; t < LONG; t++) {
            bool cut = kind == 0 && barrier[t];
            uint64_t mix =
                (uint64_t)(barrier[t] ? filler : tokens[t]) * (uint64_t)info.multipliers[0];
            for (size_t s = 1; s < (size_t)info.orders; s++) {
                cut = cut || s > t || barrier[t - s] || (kind == 1 && tokens[t - s] == info.eos);
                mix ^= (uint64_t)(cut ? filler : tokens[t - s]) * (uint64_t)info.multipliers[s];
                for (size_t h = 0; h < (size_t)info.rows_per_ngram; h++) {
                    size_t c = (s - 1) * (size_t)info.rows_per_ngram + h;
                    assert_int_equal(got[t * info.rows_per_token + c],
                                     info.offsets[c] + (int64_t)(mix % (uint64_t)info.sizes[c]));
                }
            }
        }
        embla_ngram_free(g);
    }
}

static void a_batch_is_its_sequences_for_any_number_of_threads(void **state)
{
    enum { B = 9, T = 3001 };
    static const int threads[] = {0, 1, 2, 3, 4, 8};
    int32_t *tokens = malloc(sizeof *tokens * B * T), *history = malloc(sizeof *history * B * 8);
    uint8_t *barrier = malloc(B * T);
    int64_t *single = malloc(sizeof *single * B * T * MOST_COLUMNS);
    int64_t *got = malloc(sizeof *got * B * T * MOST_COLUMNS);
    embla_ngram_info info;
    uint64_t seed = 5;
    (void)state;
    assert_true(tokens && history && barrier && single && got);
    random_tokens(3, (size_t)B * T, tokens, barrier);
    for (size_t i = 0; i < (size_t)B * 8; i++) history[i] = (int32_t)check_below(&seed, 12) - 1;
    for (size_t kind = 0; kind < SMALL; kind++) {
        embla_ngram *g = small_one(kind);
        assert_ok(embla_ngram_describe(g, &info));
        for (size_t b = 0; b < B; b++) {
            const embla_ngram_options options = {
                .history = history + b * info.history, .barrier = barrier + b * T, .threads = 1};
            assert_ok(embla_ngram_rows(g, tokens + b * T, 1, T, &options,
                                       single + b * T * info.rows_per_token));
        }
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            const embla_ngram_options options = {
                .history = history, .barrier = barrier, .threads = threads[i]};
            memset(got, 0x55, sizeof *got * B * T * MOST_COLUMNS);
            assert_ok(embla_ngram_rows(g, tokens, B, T, &options, got));
            assert_memory_equal(got, single, sizeof *got * B * T * info.rows_per_token);
        }
        embla_ngram_free(g);
    }
    free(tokens), free(history), free(barrier), free(single), free(got);
}

static void nothing_is_written_outside(void **state)
{
    static const int32_t tokens[] = {1, 2, 3, 4, 5};
    (void)state;
    for (size_t kind = 0; kind < SMALL; kind++) {
        embla_ngram *g = small_one(kind);
        check_guarded out = check_guard(5 * columns(g) * sizeof(int64_t), 8);
        assert_ok(embla_ngram_rows(g, tokens, 1, 5, NULL, (int64_t *)(void *)out.bytes));
        check_guards(&out);
        check_guard_free(&out);
        embla_ngram_free(g);
    }
}

/* ---- kernel sets ---- */

static void every_kernel_set_has_the_same_rows(void **state)
{
    static const char *const models[] = {"deepseek-v4.1-flash", "qwen3.8-flash-next",
                                         "longcat-flash-lite"};
    static int32_t tokens[LONG], history[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static uint8_t barrier[LONG];
    static int64_t first[LONG * 24], got[LONG * 24];
    (void)state;
    for (size_t m = 0; m < COUNT_OF(models) + SMALL; m++) {
        bool small = m >= COUNT_OF(models);
        embla_ngram *g = small ? small_one(m - COUNT_OF(models)) : named(models[m], -1);
        const embla_ngram_options options = {.history = history, .barrier = barrier};
        random_tokens(m, LONG, tokens, barrier);
        for (size_t i = 0; i < LONG && !small; i++) tokens[i] = (int32_t)(i * 7919 % 99092);
        for (size_t set = 0; set < CHECK_SETS; set++) {
            if (!embla_kernels_find(check_sets[set])) continue;
            embla_kernels_use(embla_kernels_find(check_sets[set]));
            assert_ok(embla_ngram_rows(g, tokens, 1, LONG, &options, set == 0 ? first : got));
            if (set > 0) same_rows(got, first, LONG * columns(g));
        }
        embla_kernels_use(NULL);
        embla_ngram_free(g);
    }
}

/* Where a quotient guessed in double could be wrong by one: next to multiples of the size. */
static void remainders_are_exact_next_to_multiples(void **state)
{
    static const int32_t tokens[] = {1, 0};
    int64_t sizes[16], rows[2 * 16];
    uint64_t seed = 11;
    (void)state;
    for (int n = 0; n < 20000; n++) {
        for (size_t i = 0; i < 16; i++)
            sizes[i] =
                (n % 4 == 0 ? 1 : 1 << 14) + /* too small for doubles, or just enough */
                (int64_t)check_below(&seed, (UINT64_C(1) << (n % 4 == 0 ? 10 : 15 + n % 18)) - 1);
        if (n % 4 > 0)
            sizes[n % 16] = n % 3 == 0 ? 1 << 14 : n % 3 == 1 ? 4294967295 : sizes[n % 16];
        uint64_t size = (uint64_t)sizes[n % 16];
        uint64_t most = (uint64_t)INT64_MAX / size,
                 times = n % 5 == 0 ? most : check_below(&seed, most);
        uint64_t mix = times * size + (uint64_t)(n % 7) - 3;
        if (mix > (uint64_t)INT64_MAX) mix = (most - 1) * size;
        mix |= 1;
        const int64_t multipliers[2] = {1, (int64_t)mix};
        const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_ENGRAM,
                                          .vocab = 2,
                                          .orders = 2,
                                          .rows_per_ngram = 16,
                                          .multipliers = multipliers,
                                          .sizes = sizes};
        embla_ngram *g = NULL;
        embla_ngram_info info;
        assert_ok(embla_ngram_new(&p, &g));
        assert_ok(embla_ngram_describe(g, &info));
        assert_ok(embla_ngram_rows(g, tokens, 1, 2, NULL, rows));
        for (size_t i = 0; i < 16; i++)
            assert_int_equal(rows[16 + i] - info.offsets[i], (int64_t)(mix % (uint64_t)sizes[i]));
        embla_ngram_free(g);
    }
}

static void check_sums(const embla_ngram_parameters *p)
{
    enum { N = 64 };
    static int64_t rows[N * 35];
    int32_t tokens[N];
    embla_ngram_info info;
    embla_ngram *g = NULL;
    uint64_t seed = 12;
    assert_ok(embla_ngram_new(p, &g));
    assert_ok(embla_ngram_describe(g, &info));
    for (size_t i = 0; i < N; i++)
        tokens[i] = (int32_t)(p->vocab - 1 - (int64_t)check_below(&seed, i < 40 ? 1 : 9));
    assert_ok(embla_ngram_rows(g, tokens, 1, N, NULL, rows));
    for (size_t t = 0; t < N; t++)
        for (size_t c = 0; c < info.rows_per_token; c++) {
            uint64_t rest = 0, size = (uint64_t)info.sizes[c];
            size_t order = c / (size_t)info.rows_per_ngram + 2;
            for (size_t s = order < t + 1 ? order : t + 1; s-- > 0;) /* Horner's way */
                rest = (rest * (uint64_t)info.vocab + (uint64_t)tokens[t - s]) % size;
            assert_int_equal(rows[t * info.rows_per_token + c] - info.offsets[c], (int64_t)rest);
        }
    embla_ngram_free(g);
}

static void sums_of_powers_are_exact_up_to_their_limit(void **state)
{
    embla_ngram_parameters p = {.kind = EMBLA_NGRAM_LONGCAT, .orders = 8};
    (void)state;
    p.vocab = 1 << 20, p.rows_per_ngram = 5, p.ratio = 4000; /* powers below 2^32 */
    check_sums(&p);
    p.rows_per_ngram = 3, p.ratio = 20000; /* above */
    check_sums(&p);
    p.vocab = 1 << 29, p.rows_per_ngram = 1; /* sums up to 2^64 */
    for (p.ratio = 7.5; p.ratio < 7.99; p.ratio += 0.02) check_sums(&p);
    p.vocab = 1 << 14, p.rows_per_ngram = 35, p.ratio = 1, p.orders = 2;
    check_sums(&p);
}

/* ---- refusals ---- */

static void tokens_outside_are_refused_with_place_and_limit(void **state)
{
    int32_t tokens[] = {1, 2, 3, 4, 5, 11};
    int32_t history[] = {1, -1, 0, 1, 1, -2};
    embla_ngram_options options = {.history = history};
    (void)state;
    embla_ngram *g = small_one(0);
    check_guarded out = check_guard(6 * columns(g) * sizeof(int64_t), 0);
    int64_t *rows = (int64_t *)(void *)out.bytes;
    assert_status(embla_ngram_rows(g, tokens, 2, 3, NULL, rows), EMBLA_ERR_RANGE);
    assert_error_has("token 11 at position 2 of sequence 1 is out of range; tokens are 0 to 10");
    tokens[5] = -1;
    assert_status(embla_ngram_rows(g, tokens, 2, 3, NULL, rows), EMBLA_ERR_RANGE);
    assert_error_has("token -1 at position 2 of sequence 1");
    tokens[5] = 10;
    assert_status(embla_ngram_rows(g, tokens, 2, 3, &options, rows), EMBLA_ERR_RANGE);
    assert_error_has("token -2 at index 2 of the history of sequence 1");
    history[5] = 11;
    assert_status(embla_ngram_rows(g, tokens, 2, 3, &options, rows), EMBLA_ERR_RANGE);
    history[5] = -1;
    options.threads = -1;
    assert_status(embla_ngram_rows(g, tokens, 2, 3, &options, rows), EMBLA_ERR_ARGUMENT);
    assert_error_has("threads is -1");
    assert_status(embla_ngram_rows(NULL, tokens, 2, 3, NULL, rows), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ngram_rows(g, NULL, 2, 3, NULL, rows), EMBLA_ERR_ARGUMENT);
    assert_error_has("tokens is NULL");
    assert_status(embla_ngram_rows(g, tokens, 2, 3, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("rows is NULL");
    assert_status(embla_ngram_rows(g, tokens, SIZE_MAX / 2, 3, NULL, rows), EMBLA_ERR_ARGUMENT);
    assert_error_has("row numbers each do not fit in memory");
    assert_status(embla_ngram_rows(g, tokens, 1, SIZE_MAX / 64, NULL, rows), EMBLA_ERR_ARGUMENT);
    check_untouched(&out);
    assert_ok(embla_ngram_rows(g, NULL, 0, 3, NULL, NULL));
    assert_ok(embla_ngram_rows(g, NULL, 3, 0, NULL, NULL));
    check_guard_free(&out);
    embla_ngram_free(g);
}

typedef struct {
    const char *sentence;
    embla_ngram_parameters p;
} refusal;

#define ENGRAM                                                                                     \
    .kind = EMBLA_NGRAM_ENGRAM, .vocab = 100, .orders = 3, .rows_per_ngram = 2, .base = 50
#define QWEN                                                                                       \
    .kind = EMBLA_NGRAM_QWEN, .vocab = 100, .orders = 3, .rows_per_ngram = 2, .base = 50, .eos = 1
#define LONGCAT                                                                                    \
    .kind = EMBLA_NGRAM_LONGCAT, .vocab = 100, .orders = 3, .rows_per_ngram = 2, .ratio = 2,       \
    .eos = 1

/* What a case says after a macro takes the place of what the macro says. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static void every_refusal_has_its_sentence(void **state)
{
    static const int64_t even[] = {1, 2, 3}, large[] = {1, 3, 93165374109644201};
    static const int64_t minus[] = {1, 3, -3};
    static const int64_t sizes[] = {10, 10, 10, 10}, none[] = {10, 0, 10, 10};
    static const int64_t back[] = {0, 10, 5, 20}, beyond[] = {0, 1, 2, 1099511627770};
    static const int64_t almost[] = {1099511627700, 1, 1, 1};
    static const int64_t below[] = {-1, 10, 20, 30};
    static const int32_t layers[] = {1, 14}, twice[] = {1, 2, 1}, negative[] = {1, -2};
    static const refusal cases[] = {
        {"unknown kind of n-gram hasher: 4", {.kind = (embla_ngram_kind)4, .vocab = 5}},
        {"vocab is 0", {ENGRAM, .vocab = 0}},
        {"vocab is 536870913", {ENGRAM, .vocab = 536870913}},
        {"orders is 1; it must be from 2 to 8", {ENGRAM, .orders = 1}},
        {"orders is 9", {ENGRAM, .orders = 9}},
        {"rows_per_ngram is 0", {ENGRAM, .rows_per_ngram = 0}},
        {"rows_per_ngram is 65; it must be from 1 to 64", {ENGRAM, .rows_per_ngram = 65}},
        {"base is 0", {ENGRAM, .base = 0}},
        {"multiple is -1", {ENGRAM, .multiple = -1}},
        {"1099511627703 rows padded to a multiple of 1000 become 1099511628000",
         {QWEN, .sizes = almost, .multiple = 1000}},
        {"pad is 100, which is not a token of the vocabulary of 100", {ENGRAM, .pad = 100}},
        {"pad is -1", {ENGRAM, .pad = -1}},
        {"pad is 5", {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 5, .pad = 5}},
        {"eos is 100, which is not a token of the vocabulary of", {QWEN, .eos = 100}},
        {"eos is -1; qwen needs an EOS token", {QWEN, .eos = -1}},
        {"eos is -2", {LONGCAT, .eos = -2}},
        {"unknown EOS rule: 3", {LONGCAT, .eos_rule = (embla_ngram_eos)3}},
        {"layer is -1", {ENGRAM, .layer = -1}},
        {"seed is -4", {ENGRAM, .seed = -4}},
        {"layer_count is 257", {ENGRAM, .layers = layers, .layer_count = 257}},
        {"layer_count is 2, but layers is NULL", {ENGRAM, .layer_count = 2}},
        {"layer 1 at index 2", {ENGRAM, .layers = twice, .layer_count = 3, .layer = 1}},
        {"layer -2 at index 1", {ENGRAM, .layers = negative, .layer_count = 2, .layer = 1}},
        {"layer is -1; the number of a table must be from 0 to 255", {QWEN, .layer = -1}},
        {"layer is 256", {QWEN, .layer = 256}},
        {"multiplier 1 is 2; it must be odd, and its product with", {ENGRAM, .multipliers = even}},
        {"multiplier 2 is 93165374109644201; it must be odd, and its product with 99",
         {ENGRAM, .multipliers = large}},
        {"multiplier 2 is -3", {ENGRAM, .multipliers = minus}},
        {"offsets of hashes are given, but their sizes are NULL", {ENGRAM, .offsets = back}},
        {"hash 1 has 0 rows", {ENGRAM, .sizes = none}},
        {"hash 2 begins at row 5, before the previous hash, which begins at 10",
         {ENGRAM, .sizes = sizes, .offsets = back}},
        {"hash 3 has rows 1099511627770 to 1099511627779",
         {ENGRAM, .sizes = sizes, .offsets = beyond}},
        {"hash 0 has rows -1", {ENGRAM, .sizes = sizes, .offsets = below}},
        {"multipliers are given, but kind 3", {LONGCAT, .multipliers = large}},
        {"sizes of hashes are given, but kind 0",
         {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 5, .sizes = sizes}},
        {"ratio -1 times a vocabulary of 100", {LONGCAT, .ratio = -1}},
        {"ratio nan", {LONGCAT, .ratio = NAN}},
        {"ratio inf", {LONGCAT, .ratio = INFINITY}},
        {"exceeds 2^64",
         {LONGCAT, .vocab = 536870912, .ratio = 16, .orders = 8, .rows_per_ngram = 1}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_ngram *g = (embla_ngram *)&g;
        embla_status status = embla_ngram_new(&cases[i].p, &g);
        if (status != EMBLA_ERR_ARGUMENT)
            fail_msg("%s: %s", cases[i].sentence, embla_status_name(status));
        assert_error_has(cases[i].sentence);
        assert_ptr_equal(g, &g);
    }
    embla_ngram *g = NULL;
    const embla_ngram_parameters other = {ENGRAM, .layers = layers, .layer_count = 2, .layer = 2};
    assert_status(embla_ngram_new(&other, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("layer 2 is not one of the 2");
    assert_status(embla_ngram_new(NULL, &g), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ngram_new(&other, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(g);
    embla_ngram_free(NULL);
}

#pragma GCC diagnostic pop

static void constants_that_are_given_are_taken(void **state)
{
    static const int64_t multipliers[] = {1, 93165374109644199, 5}; /* times 99: just below 2^63 */
    static const int64_t sizes[] = {1, 7, 10, 3}, offsets[] = {0, 0, 100, 100};
    static const int32_t tokens[] = {99, 98, 97};
    embla_ngram *g = NULL;
    embla_ngram_info info;
    int64_t rows[12];
    const embla_ngram_parameters p = {ENGRAM, .multipliers = multipliers, .sizes = sizes,
                                      .offsets = offsets, .multiple = 16};
    (void)state;
    assert_ok(embla_ngram_new(&p, &g));
    assert_ok(embla_ngram_describe(g, &info));
    assert_int_equal(info.used, 110);
    assert_int_equal(info.rows, 112);
    same_rows(info.multipliers, multipliers, 3);
    assert_ok(embla_ngram_rows(g, tokens, 1, 3, NULL, rows));
    uint64_t two = 97 ^ 98 * UINT64_C(93165374109644199), three = two ^ 99 * 5;
    same_rows(rows + 8,
              (const int64_t[]){0, (int64_t)(two % 7), 100 + (int64_t)(three % 10),
                                100 + (int64_t)(three % 3)},
              4);
    embla_ngram_free(g);
}

static void a_fold_is_used_and_must_be_of_the_vocabulary(void **state)
{
    static const int32_t folded[] = {0, 1, 0, 2, 1, 3}, as_is[] = {5, 4, 3, 2, 1, 0};
    static const int32_t plain[] = {3, 1, 2, 0, 1, 0};
    embla_fold *fold = NULL;
    embla_ngram *with = NULL, *without = NULL;
    int64_t a[6 * 4], b[6 * 4];
    embla_ngram_info info;
    (void)state;
    assert_ok(embla_fold_new(folded, 6, &fold));
    embla_ngram_parameters p = {ENGRAM, .fold = fold};
    assert_status(embla_ngram_new(&p, &with), EMBLA_ERR_ARGUMENT);
    assert_error_has("the fold has 4 different numbers, but vocab is 100");
    p.vocab = 4;
    assert_ok(embla_ngram_new(&p, &with));
    assert_ok(embla_ngram_describe(with, &info));
    assert_int_equal(info.tokens, 6);
    assert_int_equal(info.vocab, 4);
    p.fold = NULL;
    assert_ok(embla_ngram_new(&p, &without));
    assert_ok(embla_ngram_rows(with, as_is, 1, 6, NULL, a));
    assert_ok(embla_ngram_rows(without, plain, 1, 6, NULL, b));
    same_rows(a, b, 24);
    embla_ngram_parameters qwen = {QWEN, .fold = fold};
    qwen.vocab = 4;
    assert_status(embla_ngram_new(&qwen, &with), EMBLA_ERR_ARGUMENT);
    assert_error_has("has no fold; only engram has one");
    embla_ngram_free(with);
    embla_ngram_free(without);
    embla_fold_free(fold);
}

static void no_memory_is_a_status_and_rows_take_none(void **state)
{
    static const int32_t tokens[] = {1, 2, 3};
    int64_t rows[3 * MOST_COLUMNS];
    embla_ngram *g = NULL;
    const embla_ngram_parameters p = {ENGRAM};
    size_t live = embla_mem_live();
    (void)state;
    embla_mem_fail(1, false);
    assert_status(embla_ngram_new(&p, &g), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_null(g);
    assert_int_equal(embla_mem_live(), live);
    assert_ok(embla_ngram_new(&p, &g));
    embla_mem_fail(1, true);
    assert_ok(embla_ngram_rows(g, tokens, 1, 3, NULL, rows));
    embla_mem_fail(0, false);
    embla_ngram_free(g);
    assert_int_equal(embla_mem_live(), live);
}

/* Remainders by the reciprocal: sizes at their ends, mixes at theirs. */
static void remainders_are_exact_for_every_size(void **state)
{
    static const int64_t sizes[] = {1,       2, 3, 16000057, 4294967296, 4294967311, 549755813881,
                                    20000171};
    const int64_t multipliers[] = {1, INT64_MAX, INT64_MAX};
    static const int32_t tokens[] = {0, 1, 0, 1, 1};
    embla_ngram *g = NULL;
    embla_ngram_info info;
    int64_t rows[5 * 8];
    const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_ENGRAM,
                                      .vocab = 2,
                                      .orders = 3,
                                      .rows_per_ngram = 4,
                                      .multipliers = multipliers,
                                      .sizes = sizes};
    uint64_t seed = 3;
    (void)state;
    assert_ok(embla_ngram_new(&p, &g));
    assert_ok(embla_ngram_describe(g, &info));
    assert_ok(embla_ngram_rows(g, tokens, 1, 5, NULL, rows));
    for (size_t t = 0; t < 5; t++) {
        uint64_t mix = (uint64_t)tokens[t];
        for (size_t c = 0; c < 8; c++) {
            size_t s = c / 4 + 1;
            if (c % 4 == 0 && t >= s) mix ^= (uint64_t)tokens[t - s] * INT64_MAX;
            assert_int_equal(rows[t * 8 + c],
                             info.offsets[c] + (int64_t)(mix % (uint64_t)sizes[c]));
        }
    }
    embla_ngram_free(g);
    for (int i = 0; i < 3000; i++) { /* any multiplier: any mix */
        int64_t any[2] = {1, (int64_t)(check_next(&seed) >> 1 | 1)};
        int64_t size = (int64_t)(check_next(&seed) >> (24 + check_below(&seed, 40))) + 1;
        const embla_ngram_parameters one = {.kind = EMBLA_NGRAM_ENGRAM,
                                            .vocab = 2,
                                            .orders = 2,
                                            .rows_per_ngram = 1,
                                            .multipliers = any,
                                            .sizes = &size};
        const int32_t two[] = {1, 0};
        assert_ok(embla_ngram_new(&one, &g));
        assert_ok(embla_ngram_rows(g, two, 1, 2, NULL, rows));
        assert_int_equal(rows[1], any[1] % size);
        embla_ngram_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_says_what_its_generator_gives),
        cmocka_unit_test(multipliers_of_known_models_are_those_of_the_rules),
        cmocka_unit_test(sizes_and_row_counts_come_from_the_base_alone),
        cmocka_unit_test(primes_are_those_of_trial_division),
        cmocka_unit_test(strong_pseudoprimes_are_no_primes),
        cmocka_unit_test(a_ratio_that_is_no_whole_number_is_cut_at_the_size),
        cmocka_unit_test(golden_rows_of_engram),
        cmocka_unit_test(golden_rows_of_qwen),
        cmocka_unit_test(golden_rows_of_longcat),
        cmocka_unit_test(longcat_without_an_eos_rule_goes_on_across_it),
        cmocka_unit_test(identity_is_the_token_and_a_barrier_the_pad),
        cmocka_unit_test(digests_are_the_oracles),
        cmocka_unit_test(token_by_token_with_history_is_the_whole),
        cmocka_unit_test(nothing_passes_a_barrier_or_a_start),
        cmocka_unit_test(load_is_what_the_header_says),
        cmocka_unit_test(a_batch_is_its_sequences_for_any_number_of_threads),
        cmocka_unit_test(nothing_is_written_outside),
        cmocka_unit_test(every_kernel_set_has_the_same_rows),
        cmocka_unit_test(remainders_are_exact_next_to_multiples),
        cmocka_unit_test(sums_of_powers_are_exact_up_to_their_limit),
        cmocka_unit_test(tokens_outside_are_refused_with_place_and_limit),
        cmocka_unit_test(every_refusal_has_its_sentence),
        cmocka_unit_test(constants_that_are_given_are_taken),
        cmocka_unit_test(a_fold_is_used_and_must_be_of_the_vocabulary),
        cmocka_unit_test(no_memory_is_a_status_and_rows_take_none),
        cmocka_unit_test(remainders_are_exact_for_every_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
