/* SPDX-License-Identifier: Apache-2.0 */
/* What a table over many hosts costs: memory, bytes, and the time of a step.
 *
 * With n tokens of k row numbers each, u the share of different rows, r bytes of a row, P ranks,
 * B and M the speeds of network and memory, a the latency of a message:
 *   network   n k u (1 - 1/P) (r + 8) / B     each different row once: its number, then its bytes
 *   memory    n k (3 u r + out) / M           gather: read, write; expand: read, write the vector
 *   messages  3 a (P - 1)                     counts, numbers, rows; 6 a sqrt(P) in two levels
 * Gradients are f32, and are always sent. An owner reads and writes a row and its state once.
 *
 * The parts follow each other, as in embla_sharded_lookup. `overlapped` is the limit if network and
 * memory work at the same time: max(network, memory) + messages.
 */
#include "cluster/cluster_plan.h"

#include <math.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/options.h"

enum {
    BUCKETS_PER_RANK = 4, /* so that no rank has much more than its share */
    ASKED_MOST = 1 << 30, /* row numbers of a lookup */
    GROUP_MOST = 256,
    EXCHANGES = 3 /* of a lookup: counts, row numbers, rows */
};

/* ---- options ---- */

static embla_status check_between(const char *what, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%s is %" PRId64 "; it must be from %" PRId64 " to %" PRId64, what, value,
                      least, most);
}

static embla_status check_speed(const char *what, double value, double most)
{
    if (value >= 0.0 && value <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %g; it must be from 0 to %g", what, value, most);
}

static embla_status check_machine(const embla_plan_machine *m)
{
    EMBLA_TRY(embla_options_check(m));
    if (m->memory < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "memory is %" PRId64 " bytes; it must be 0 or greater", m->memory);
    EMBLA_TRY(check_speed("the speed of the network", m->network, 1e18));
    EMBLA_TRY(check_speed("the latency", m->latency, 60.0));
    EMBLA_TRY(check_speed("the bandwidth of memory", m->bandwidth, 1e18));
    EMBLA_TRY(check_speed("the time of a row number", m->dedup, 1.0));
    EMBLA_TRY(check_speed("the time to find an owner", m->owner, 1.0));
    return check_speed("the time of a row", m->row, 1.0);
}

static embla_status check(const embla_plan_options *o)
{
    if (!o) return embla_fail(EMBLA_ERR_ARGUMENT, "the options of a plan are NULL");
    EMBLA_TRY(embla_options_check(o));
    EMBLA_TRY(check_machine(&o->machine));
    EMBLA_TRY(check_between("rows", o->rows, 1, EMBLA_ROWS_MOST));
    if (o->dim < 1 || o->dim > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "dim is %zu; it must be from 1 to %zu", o->dim,
                          EMBLA_DIM_MOST);
    if (o->scale_bytes > EMBLA_DIM_MOST || o->out_bytes > 8 * EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a row has %zu bytes of scales and a vector %zu bytes; the maxima are "
                          "%zu and %zu",
                          o->scale_bytes, o->out_bytes, EMBLA_DIM_MOST, 8 * EMBLA_DIM_MOST);
    EMBLA_TRY(check_between("the number of tokens", o->tokens, 1, ASKED_MOST));
    EMBLA_TRY(check_between("the number of rows per token", o->rows_per_token, 0,
                            ASKED_MOST / o->tokens));
    EMBLA_TRY(check_between("hosts", o->hosts, 0, EMBLA_BUCKETS_MOST));
    EMBLA_TRY(check_between("ranks per host", o->ranks_per_host, 0,
                            EMBLA_BUCKETS_MOST / (o->hosts > 0 ? o->hosts : 1)));
    EMBLA_TRY(check_between("a group", o->group, 0, EMBLA_BUCKETS_MOST));
    EMBLA_TRY(check_speed("the exponent of Zipf's law", o->zipf, 10.0));
    EMBLA_TRY(check_speed("the share of different rows", o->unique, 1.0));
    EMBLA_TRY(embla_buckets_check(o->buckets));
    if (!o->frozen && !embla_optim_name(o->optimizer))
        return embla_fail(EMBLA_ERR_ARGUMENT, "there is no optimizer %d", (int)o->optimizer);
    return EMBLA_OK;
}

/* Bytes of an optimizer's state for one row, as embla_optim_new allocates it. */
static embla_status state_size(const embla_plan_options *o, size_t *out)
{
    size_t row = o->dim * sizeof(float), master = o->dtype == EMBLA_F32 ? 0 : row;
    *out = 0;
    if (o->frozen) return EMBLA_OK;
    if (o->dtype != EMBLA_F32 && o->dtype != EMBLA_BF16 && o->dtype != EMBLA_F16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "rows of %s cannot be trained; use f32, bf16 or f16, or plan lookups "
                          "alone",
                          embla_dtype_name(o->dtype));
    switch (o->optimizer) {
    case EMBLA_OPTIM_SGD:
        *out = master + (o->momentum ? row : 0);
        break;
    case EMBLA_OPTIM_ADAGRAD:
        *out = master + row;
        break;
    case EMBLA_OPTIM_ADAGRAD_ROWWISE:
        *out = master + sizeof(float);
        break;
    case EMBLA_OPTIM_ADAMW:
        *out = master + 2 * row;
        break;
    }
    return EMBLA_OK;
}

embla_status embla_plan_prepare(const embla_plan_options *options, embla_plan_sizes *out)
{
    embla_plan_sizes sizes = {0};
    uint64_t table;
    EMBLA_TRY(check(options));
    embla_plan_options *o = &sizes.o;
    *o = *options;
    if (o->dtype == 0) o->dtype = EMBLA_F32;
    EMBLA_TRY(embla_dtype_row_bytes(o->dtype, o->dim, &sizes.row_bytes));
    sizes.row_bytes += o->scale_bytes;
    EMBLA_TRY(state_size(o, &sizes.state_bytes));
    if (!embla_mul_ok((uint64_t)o->rows, sizes.row_bytes + sizes.state_bytes, &table) ||
        table > INT64_MAX / 8) /* room for padding and buffers */
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a table of %" PRId64 " rows with %zu bytes each is larger than any "
                          "cluster",
                          o->rows, sizes.row_bytes + sizes.state_bytes);
    if (o->rows_per_token == 0) o->rows_per_token = 1;
    if (o->ranks_per_host == 0) o->ranks_per_host = 1;
    if (o->out_bytes == 0) o->out_bytes = o->dim * sizeof(float);
    embla_plan_machine *m = &o->machine;
    if (m->memory == 0) m->memory = INT64_C(512000000000);
    if (m->network == 0.0) m->network = 25e9;
    if (m->latency == 0.0) m->latency = 2e-6;
    if (m->bandwidth == 0.0) m->bandwidth = 200e9;
    if (m->dedup == 0.0) m->dedup = 18e-9;
    if (m->owner == 0.0) m->owner = 2e-9;
    sizes.asked = (double)o->tokens * (double)o->rows_per_token;
    *out = sizes;
    return EMBLA_OK;
}

/* ---- ranks ---- */

size_t embla_plan_buckets(const embla_plan_sizes *sizes, int64_t ranks)
{
    if (sizes->o.buckets > 0) return sizes->o.buckets;
    size_t buckets = embla_buckets_usual(sizes->o.rows);
    while (buckets < EMBLA_BUCKETS_MOST && (int64_t)buckets / BUCKETS_PER_RANK < ranks)
        buckets *= 2;
    return buckets;
}

int64_t embla_plan_near(const embla_plan_sizes *sizes, int64_t among)
{
    int64_t near = sizes->o.send ? 1 : sizes->o.ranks_per_host;
    return near < among ? near : among;
}

embla_status embla_plan_group(const embla_plan_sizes *sizes, int64_t ranks, int64_t *out)
{
    int64_t group = sizes->o.group;
    if (group > 0 && ranks % group != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "groups of %" PRId64 " ranks do not divide %" PRId64 " ranks", group,
                          ranks);
    if (group == 0)
        for (group = ranks < GROUP_MOST ? ranks : GROUP_MOST; ranks % group != 0;) group--;
    *out = group;
    return EMBLA_OK;
}

/* ---- time ---- */

/* Seconds of the messages of `exchanges` exchanges. */
static double messages(const embla_plan_sizes *s, embla_plan_exchange exchange, int64_t among,
                       int64_t near, double exchanges)
{
    double each = (double)(among - near);
    if (exchange == EMBLA_PLAN_EXCHANGE_TWO_LEVEL && among > near) each = 2.0 * sqrt((double)among);
    return exchanges * each * s->o.machine.latency;
}

/* Gradients: sums within the rank, ordered by owner, to the owners, sums there. The sum of a
 * different row is written and read three times: by the first sum, in the order of owners, and as
 * it arrives. */
static embla_plan_part backward(const embla_plan_sizes *s, embla_plan_exchange exchange,
                                int64_t ranks, int64_t among, const embla_plan_load *load)
{
    double ranks_here = (double)s->o.ranks_per_host, row = 4.0 * (double)s->o.dim;
    double hops = exchange == EMBLA_PLAN_EXCHANGE_TWO_LEVEL ? 2.0 : 1.0;
    double memory = row * (load->asked + 6.0 * load->unique + load->touched);
    embla_plan_part part = {.bytes = hops * load->sent * (row + 8.0)};
    part.seconds = 2.0 * load->asked * s->o.machine.dedup +
                   memory * ranks_here / s->o.machine.bandwidth +
                   messages(s, exchange, among, 1, EXCHANGES);
    if (ranks > among) { /* groups: the sums of all copies, by a ring */
        double copies = (double)ranks / (double)among;
        double ring = 2.0 * load->touched * row * (1.0 - 1.0 / copies);
        part.bytes += ring;
        part.seconds += 2.0 * (copies - 1.0) * s->o.machine.latency;
    }
    part.seconds += part.bytes * ranks_here / s->o.machine.network;
    return part;
}

void embla_plan_time(const embla_plan_sizes *s, embla_plan_exchange exchange, int64_t ranks,
                     int64_t among, const embla_plan_load *load, embla_plan_times *out)
{
    const embla_plan_options *o = &s->o;
    double ranks_here = (double)o->ranks_per_host;
    double network = o->machine.network / ranks_here, memory = o->machine.bandwidth / ranks_here;
    double row = (double)s->row_bytes, wide = fmax(load->far, load->served);
    double hops = exchange == EMBLA_PLAN_EXCHANGE_TWO_LEVEL ? 2.0 : 1.0;
    int64_t near = embla_plan_near(s, among);
    bool direct = near == among && !o->send; /* one host: rows are read where they are */
    embla_plan_times t = {0};
    t.dedup.bytes = 8.0 * load->asked;
    t.dedup.seconds = load->asked * (direct ? o->machine.owner : o->machine.dedup);
    t.expand.bytes = load->asked * (double)o->out_bytes + load->unique * row;
    t.expand.seconds = t.expand.bytes / memory + (direct ? load->unique * o->machine.row : 0.0);
    if (!direct) {
        double gathered = load->served + load->unique - load->far;
        t.numbers = (embla_plan_part){hops * wide * 8.0, hops * wide * 8.0 / network};
        t.gather.bytes = 2.0 * gathered * row;
        t.gather.seconds = t.gather.bytes / memory + gathered * o->machine.row;
        t.rows = (embla_plan_part){hops * wide * row, hops * wide * row / network};
        t.latency = messages(s, exchange, among, near, EXCHANGES);
    }
    double net = t.numbers.seconds + t.rows.seconds, mem = t.gather.seconds + t.expand.seconds;
    t.lookup = t.dedup.seconds + net + mem + t.latency;
    t.overlapped = fmax(net, mem) + t.latency;
    if (!o->frozen) {
        double touched = 4.0 * (double)o->dim + 2.0 * (row + (double)s->state_bytes);
        t.backward = backward(s, exchange, ranks, among, load);
        t.optimizer.bytes = load->touched * touched;
        t.optimizer.seconds = t.optimizer.bytes / memory + load->touched * o->machine.row;
    }
    t.step = t.lookup + t.backward.seconds + t.optimizer.seconds;
    *out = t;
}

/* ---- memory ---- */

/* Bytes on a host if `among` ranks hold the table. */
static void host_memory(const embla_plan_sizes *s, double unique, int64_t among,
                        embla_plan_report *plan)
{
    const embla_plan_options *o = &s->o;
    size_t buckets = embla_plan_buckets(s, among);
    int64_t here = among < o->ranks_per_host ? among : o->ranks_per_host;
    int64_t each = ((int64_t)buckets + among - 1) / among; /* buckets of a rank */
    int64_t rows = each * ((o->rows + (int64_t)buckets - 1) / (int64_t)buckets) * here;
    double dim_bytes = 4.0 * (double)o->dim, asked = s->asked, found = unique * s->asked;
    /* slots and lists of a lookup; rows to send and received; vectors */
    double buffers = asked * (4 * 4 + 4 * 8) + 2.25 * found * (double)s->row_bytes + 8.0 * found +
                     asked * (double)o->out_bytes;
    /* gradients; their sums, ordered, received; lists of the sums */
    if (!o->frozen) buffers += asked * (dim_bytes + 48.0) + 4.0 * found * (dim_bytes + 8.0);
    plan->host_rows = rows * (int64_t)s->row_bytes;
    plan->host_state = rows * (int64_t)s->state_bytes;
    plan->host_buffers = (int64_t)(buffers * (double)here);
    plan->host_bytes = plan->host_rows + plan->host_state + plan->host_buffers;
}

static bool hosts_suffice(const embla_plan_sizes *s, double unique, int64_t hosts)
{
    embla_plan_report plan = {0};
    host_memory(s, unique, hosts * s->o.ranks_per_host, &plan);
    return plan.host_bytes <= s->o.machine.memory;
}

/* The smallest number of hosts that hold the table; 0 if none does. */
static int64_t count_hosts(const embla_plan_sizes *s, double unique)
{
    int64_t most = EMBLA_BUCKETS_MOST / s->o.ranks_per_host, low = 0, high = 1;
    if (s->o.buckets > 0) most = (int64_t)s->o.buckets / s->o.ranks_per_host;
    while (high < most && !hosts_suffice(s, unique, high)) {
        low = high;
        high = 2 * high < most ? 2 * high : most;
    }
    if (high > most || !hosts_suffice(s, unique, high)) return 0;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (hosts_suffice(s, unique, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* ---- the plan ---- */

double embla_plan_touched(const embla_plan_sizes *s, const embla_zipf *zipf, double unique,
                          int64_t ranks, int64_t owners)
{
    double all = zipf ? embla_zipf_unique(zipf, s->asked * (double)ranks)
                      : fmin(unique * s->asked * (double)ranks, (double)s->o.rows);
    return all / (double)owners;
}

static void compute_times(const embla_plan_sizes *s, const embla_zipf *zipf,
                          embla_plan_report *plan)
{
    for (int i = 0; i < EMBLA_PLAN_EXCHANGES; i++) {
        embla_plan_exchange exchange = (embla_plan_exchange)i;
        int64_t among = exchange == EMBLA_PLAN_EXCHANGE_GROUPS ? plan->group : plan->ranks;
        double share = (double)embla_plan_near(s, among) / (double)among;
        embla_plan_load load = {.asked = s->asked, .unique = plan->unique * s->asked};
        load.far = load.served = load.unique * (1.0 - share);
        load.sent = load.unique * (1.0 - 1.0 / (double)among);
        load.touched = embla_plan_touched(s, zipf, plan->unique, plan->ranks, among);
        embla_plan_time(s, exchange, plan->ranks, among, &load, &plan->times[i]);
    }
    for (int i = 1; i < EMBLA_PLAN_EXCHANGES; i++) {
        if (i == EMBLA_PLAN_EXCHANGE_GROUPS && !plan->group_fits) continue;
        if (plan->times[i].step < plan->times[plan->fastest].step)
            plan->fastest = (embla_plan_exchange)i;
    }
}

static embla_plan_verdict judge(const embla_plan_sizes *s, const embla_plan_report *plan)
{
    const embla_plan_times *flat = &plan->times[EMBLA_PLAN_EXCHANGE_FLAT];
    if (plan->min_hosts == 1) return EMBLA_PLAN_VERDICT_ONE_HOST;
    if (plan->min_hosts == 0 || plan->host_bytes > s->o.machine.memory)
        return EMBLA_PLAN_VERDICT_MEMORY;
    return flat->latency > flat->numbers.seconds + flat->rows.seconds ? EMBLA_PLAN_VERDICT_LATENCY
                                                                      : EMBLA_PLAN_VERDICT_FITS;
}

embla_status embla_plan_compute(const embla_plan_options *options, embla_plan_report *out)
{
    embla_plan_sizes s;
    embla_plan_report plan = {0}, copy = {0};
    embla_zipf zipf;
    EMBLA_TRY(embla_plan_prepare(options, &s));
    EMBLA_NEED(out);
    embla_zipf_set(&zipf, s.o.rows, s.o.zipf);
    plan.unique = s.o.unique > 0.0 ? s.o.unique : embla_zipf_unique(&zipf, s.asked) / s.asked;
    plan.min_hosts = count_hosts(&s, plan.unique);
    plan.hosts = s.o.hosts > 0 ? s.o.hosts : plan.min_hosts > 0 ? plan.min_hosts : 1;
    plan.ranks = plan.hosts * s.o.ranks_per_host;
    plan.buckets = embla_plan_buckets(&s, plan.ranks);
    if (plan.ranks > (int64_t)plan.buckets)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " ranks share %zu buckets; there must be at least a bucket "
                          "for each rank",
                          plan.ranks, plan.buckets);
    plan.row_bytes = s.row_bytes;
    plan.state_bytes = s.state_bytes;
    plan.table = s.o.rows * (int64_t)(s.row_bytes + s.state_bytes);
    host_memory(&s, plan.unique, plan.ranks, &plan);
    EMBLA_TRY(embla_plan_group(&s, plan.ranks, &plan.group));
    host_memory(&s, plan.unique, plan.group, &copy);
    plan.group_fits = copy.host_bytes <= s.o.machine.memory;
    compute_times(&s, s.o.unique > 0.0 ? NULL : &zipf, &plan);

    const embla_plan_machine *m = &s.o.machine;
    double different = plan.unique * s.asked, far = different;
    far *= 1.0 - (double)embla_plan_near(&s, plan.ranks) / (double)plan.ranks;
    plan.wire = far * (double)(s.row_bytes + 8) / (double)s.o.tokens;
    plan.flat_limit = different * (double)(s.row_bytes + 8) * (double)s.o.ranks_per_host /
                      m->network / (EXCHANGES * m->latency);
    plan.verdict = judge(&s, &plan);
    *out = plan;
    return EMBLA_OK;
}
