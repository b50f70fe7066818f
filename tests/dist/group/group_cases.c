/* group_cases.c - collectives, mismatched calls and splitting; every rank knows what it must get. */
#include "dist/group/group_cases.h"

#include <math.h>
#include <string.h>

#include "dist/group/rank_case.h"

#define MOST_RANKS 8

/* first, first + step, ... in the tensor's shape */
static kn_tensor *sequence(state *s, kn_dtype dtype, int64_t count, double first, double step)
{
    kn_tensor *index = kn_arange(0, (double)count, 1, .dtype = KN_F64, .device = kn_device_host());
    double *values = kn_data(index);
    for (int64_t i = 0; i < count; i++)
        values[i] = first + step * (double)i;
    kn_tensor *tensor = kn_empty(KN_SHAPE(count), .dtype = dtype, .device = s->device);
    KN_NO_GRAD;
    kn_copy_(tensor, index);
    return tensor;
}

/* --- in place ----------------------------------------------------------------------------------------------------- */

static void reduces_every_dtype(state *s)
{
    static const kn_dtype dtypes[] = {KN_F64, KN_F32, KN_F16, KN_BF16, KN_I64, KN_I32, KN_I16, KN_I8, KN_U8};
    const double total = s->size * (s->size + 1) / 2.0;
    for (size_t d = has_f64(s->device) ? 0 : 1; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        kn_tensor *x = sequence(s, dtypes[d], 5, s->rank + 1, 1);
        EXPECT_OK(kn_group_all_reduce(s->group, x));
        EXPECT(value_at(x, 3) == total + 3 * s->size);
        x = sequence(s, dtypes[d], 5, s->rank + 1, 1);
        EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_MAX));
        EXPECT(value_at(x, 4) == s->size + 4);
        x = sequence(s, dtypes[d], 5, s->rank + 1, 1);
        EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_MIN));
        EXPECT(value_at(x, 0) == 1);
    }
}

static void reduces_bits_means_and_nan(state *s)
{
    kn_tensor *x = kn_full(KN_SHAPE(3), s->rank == 0 ? 6 : 12, .dtype = KN_I32, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_AND));
    EXPECT(value_at(x, 1) == (s->size == 1 ? 6 : 4));
    x = kn_full(KN_SHAPE(1), s->rank == s->size - 1, .dtype = KN_BOOL, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, x));
    EXPECT(value_at(x, 0) == 1);
    x = kn_full(KN_SHAPE(4), s->rank, .dtype = KN_F32, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_MEAN));
    EXPECT(value_at(x, 2) == (float)(s->size * (s->size - 1) / 2.0) / (float)s->size);
    x = kn_full(KN_SHAPE(2), s->rank == s->size - 1 ? NAN : 1, .dtype = KN_F32, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_MIN));
    EXPECT(isnan(value_at(x, 1)));
    x = kn_full(KN_SHAPE(2), 2, .dtype = KN_F16, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_PRODUCT));
    EXPECT(value_at(x, 0) == pow(2, s->size));
}

/* What rank r gives to element i: sums of these depend on their order. */
static float uneven(int r, int64_t i)
{
    static const float sizes[] = {1e8f, 1, -1e8f, 3e-3f, 7e4f};
    return sizes[r % 5] * (1 + (float)(i % 97) / 7);
}

static bool is_sum_in_order(state *s, kn_tensor *x, int64_t first)
{
    kn_tensor *host = kn_to_device(x, kn_device_host());
    const float *values = kn_data(host);
    for (int64_t i = 0; i < kn_numel(x); i++) {
        volatile float sum = uneven(0, first + i);
        for (int r = 1; r < s->size; r++)
            sum = sum + uneven(r, first + i);
        if (values[i] != sum)
            return false;
    }
    return true;
}

static kn_tensor *uneven_tensor(state *s, int64_t first, int64_t count)
{
    kn_tensor *host = kn_empty(KN_SHAPE(count), .device = kn_device_host());
    for (int64_t i = 0; i < count; i++)
        ((float *)kn_data(host))[i] = uneven(s->rank, first + i);
    return kn_to_device(host, s->device);
}

/* Small tensors and large ones are exchanged in different ways. */
static void adds_in_the_order_of_the_ranks(state *s)
{
    static const int64_t counts[] = {7, 60001};
    for (int i = 0; i < 2; i++) {
        const int64_t count = counts[i];
        kn_tensor *x = uneven_tensor(s, 0, count), *blocks[MOST_RANKS];
        EXPECT_OK(kn_group_all_reduce(s->group, x));
        EXPECT(is_sum_in_order(s, x, 0));
        x = uneven_tensor(s, 0, count);
        EXPECT_OK(kn_group_reduce(s->group, x, s->size - 1));
        EXPECT(s->rank == s->size - 1 ? is_sum_in_order(s, x, 0)
                                      : value_at(x, count - 1) == uneven(s->rank, count - 1));
        for (int r = 0; r < s->size; r++)
            blocks[r] = uneven_tensor(s, r * count, count);
        EXPECT_OK(kn_group_reduce_scatter(s->group, x, blocks));
        EXPECT(is_sum_in_order(s, x, s->rank * count));
    }
}

/* Several pieces, and strides. */
static void reduces_large_and_strided_tensors(state *s)
{
    const int64_t count = 3 * 1024 * 1024 + 17;
    kn_tensor *x = sequence(s, KN_F32, count, s->rank, 0.25);
    EXPECT_OK(kn_group_all_reduce(s->group, x));
    const double ranks = s->size * (s->size - 1) / 2.0;
    EXPECT(value_at(x, 0) == ranks);
    EXPECT(value_at(x, count - 1) == (double)(float)(ranks + 0.25 * (double)(count - 1) * s->size));
    kn_tensor *matrix = kn_full(KN_SHAPE(3, 4), s->rank, .dtype = KN_F32, .device = s->device);
    kn_tensor *column = view(matrix, 2, 3, 1, 4, 1); /* of the transpose */
    EXPECT_OK(kn_group_all_reduce(s->group, column));
    EXPECT(value_at(matrix, 1) == ranks && value_at(matrix, 6) == ranks);
    EXPECT(value_at(matrix, 0) == s->rank && value_at(matrix, 11) == s->rank);
    kn_tensor *nothing = kn_zeros(KN_SHAPE(0, 3), .dtype = KN_F32, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(s->group, nothing));
}

static void reduces_and_broadcasts_from_each_root(state *s)
{
    for (int root = 0; root < s->size; root++) {
        kn_tensor *x = kn_full(KN_SHAPE(2, 3), s->rank + 1, .dtype = KN_F32, .device = s->device);
        EXPECT_OK(kn_group_reduce(s->group, x, root));
        EXPECT(value_at(x, 5) == (s->rank == root ? s->size * (s->size + 1) / 2 : s->rank + 1));
        x = kn_full(KN_SHAPE(2, 3), s->rank, .dtype = KN_BF16, .device = s->device);
        EXPECT_OK(kn_group_broadcast(s->group, x, root));
        EXPECT(value_at(x, 0) == root);
    }
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void gathers_and_scatters(state *s)
{
    kn_tensor *list[MOST_RANKS];
    for (int root = 0; root < s->size; root++) {
        for (int r = 0; r < s->size; r++)
            list[r] = kn_zeros(KN_SHAPE(2), .dtype = KN_I64, .device = s->device);
        kn_tensor *x = kn_full(KN_SHAPE(2), 10 + s->rank, .dtype = KN_I64, .device = s->device);
        EXPECT_OK(kn_group_gather(s->group, s->rank == root ? list : NULL, x, root));
        for (int r = 0; r < s->size; r++)
            EXPECT(value_at(list[r], 1) == (s->rank == root ? 10 + r : 0));
        EXPECT_OK(kn_group_all_gather(s->group, list, x));
        for (int r = 0; r < s->size; r++)
            EXPECT(value_at(list[r], 0) == 10 + r);
        kn_tensor *mine = kn_zeros(KN_SHAPE(2), .dtype = KN_I64, .device = s->device);
        EXPECT_OK(kn_group_scatter(s->group, mine, s->rank == root ? list : NULL, root));
        EXPECT(value_at(mine, 1) == 10 + s->rank);
    }
    for (int r = 0; r < s->size; r++)
        list[r] = kn_full(KN_SHAPE(3), r + s->rank, .dtype = KN_F32, .device = s->device);
    kn_tensor *sum = kn_zeros(KN_SHAPE(3), .dtype = KN_F32, .device = s->device);
    EXPECT_OK(kn_group_reduce_scatter(s->group, sum, list));
    EXPECT(value_at(sum, 2) == s->size * s->rank + s->size * (s->size - 1) / 2);
    EXPECT_OK(kn_group_reduce_scatter(s->group, sum, list, .op = KN_REDUCE_MEAN));
    EXPECT(value_at(sum, 0) == s->rank + (s->size - 1) / 2.0);
}

/* Rank a sends a + b + 1 elements with the value 10 a + b to rank b. */
static void exchanges_blocks_of_all_sizes(state *s)
{
    kn_tensor *inputs[MOST_RANKS], *outputs[MOST_RANKS];
    for (int r = 0; r < s->size; r++) {
        inputs[r] = kn_full(KN_SHAPE(s->rank + r + 1), 10 * s->rank + r, .dtype = KN_F32, .device = s->device);
        outputs[r] = kn_zeros(KN_SHAPE(s->rank + r + 1), .dtype = KN_F32, .device = s->device);
    }
    EXPECT_OK(kn_group_all_to_all(s->group, outputs, inputs));
    for (int r = 0; r < s->size; r++)
        EXPECT(value_at(outputs[r], s->rank + r) == 10 * r + s->rank);
}

/* --- calls that are only started ---------------------------------------------------------------------------------- */

static void starts_several_calls(state *s)
{
    enum { CALLS = 5 };
    kn_tensor *x[CALLS];
    kn_work *work[CALLS];
    for (int i = 0; i < CALLS; i++) {
        x[i] = kn_full(KN_SHAPE(100, 100), i + s->rank, .dtype = KN_F32, .device = s->device);
        EXPECT_OK(kn_group_all_reduce(s->group, x[i], .work = &work[i]));
    }
    for (int i = CALLS; i-- > 0;) {
        EXPECT_OK(kn_work_wait(work[i]));
        EXPECT(kn_work_is_done(work[i]));
        EXPECT(value_at(x[i], 9999) == i * s->size + s->size * (s->size - 1) / 2);
        kn_work_free(work[i]);
    }
}

/* --- what differs between ranks ----------------------------------------------------------------------------------- */

static void names_calls_that_differ(state *s)
{
    if (s->size == 1)
        return;
    const bool last = s->rank == s->size - 1;
    kn_tensor *x = kn_full(KN_SHAPE(last ? 50 : 100), 1, .dtype = KN_F32, .device = s->device);
    EXPECT(kn_group_all_reduce(s->group, x) == KN_ERR_STATE &&
           strstr(kn_error_message(), "of rank 0 is all_reduce of 100 float32 (sum), that of rank") &&
           strstr(kn_error_message(), "is all_reduce of 50 float32 (sum)"));
    EXPECT(value_at(x, 0) == 1);
    EXPECT(kn_group_broadcast(s->group, x, last ? 1 : 0) == KN_ERR_STATE);
    EXPECT((last ? kn_group_barrier(s->group) : kn_group_all_reduce(s->group, x)) == KN_ERR_STATE);
    x = kn_full(KN_SHAPE(3), 1, .dtype = last ? KN_I64 : KN_F32, .device = s->device);
    EXPECT(kn_group_all_reduce(s->group, x) == KN_ERR_STATE && strstr(kn_error_message(), "int64"));
    EXPECT(value_at(x, 0) == 1);
    kn_tensor *inputs[MOST_RANKS], *outputs[MOST_RANKS];
    for (int r = 0; r < s->size; r++) {
        inputs[r] = kn_zeros(KN_SHAPE(2), .device = s->device);
        outputs[r] = kn_zeros(KN_SHAPE(last ? 3 : 2), .device = s->device);
    }
    EXPECT(kn_group_all_to_all(s->group, outputs, inputs) == KN_ERR_SHAPE &&
           strstr(kn_error_message(), "rank 0 sends 8 bytes to rank"));
    EXPECT_OK(kn_group_barrier(s->group)); /* the group goes on */
}

/* The bytes of one dtype are no values of another. */
static void refuses_outputs_unlike_the_inputs(state *s)
{
    kn_tensor *inputs[MOST_RANKS], *outputs[MOST_RANKS];
    for (int r = 0; r < s->size; r++) {
        inputs[r] = kn_ones(KN_SHAPE(2), .device = s->device);
        outputs[r] = kn_full(KN_SHAPE(2), 7, .dtype = KN_I32, .device = s->device);
    }
    EXPECT(kn_group_all_to_all(s->group, outputs, inputs) == KN_ERR_DTYPE &&
           strstr(kn_error_message(), "outputs[0] is int32"));
    EXPECT(value_at(outputs[0], 0) == 7);
    inputs[0] = NULL;
    EXPECT(kn_group_all_to_all(s->group, outputs, inputs) == KN_ERR_ARGUMENT &&
           strstr(kn_error_message(), "inputs[0] is NULL"));
}

static void refuses_bad_arguments(state *s)
{
    kn_tensor *x = kn_zeros(KN_SHAPE(3), .device = s->device);
    kn_tensor *list[MOST_RANKS] = {NULL};
    EXPECT(kn_group_all_reduce(s->group, NULL) == KN_ERR_ARGUMENT);
    EXPECT(kn_group_all_reduce(NULL, x) == KN_ERR_ARGUMENT);
    EXPECT(kn_group_all_reduce(s->group, x, .op = KN_REDUCE_XOR) == KN_ERR_DTYPE);
    EXPECT(kn_group_all_reduce(s->group, x, .op = (kn_reduce_op)99) == KN_ERR_ARGUMENT);
    EXPECT(kn_group_all_reduce(s->group, view(x, 2, 3, 0, 1, 0)) == KN_ERR_STATE);
    EXPECT(kn_group_broadcast(s->group, x, s->size) == KN_ERR_ARGUMENT && strstr(kn_error_message(), "root is"));
    EXPECT(kn_group_gather(s->group, NULL, x, s->size) == KN_ERR_ARGUMENT && strstr(kn_error_message(), "root is"));
    EXPECT(kn_group_scatter(s->group, x, NULL, -1) == KN_ERR_ARGUMENT && strstr(kn_error_message(), "root is"));
    EXPECT(kn_group_all_gather(s->group, list, x) == KN_ERR_ARGUMENT);
    EXPECT(kn_group_send(s->group, x, s->rank) == KN_ERR_ARGUMENT);
    EXPECT(kn_group_receive(s->group, x, -2) == KN_ERR_ARGUMENT);
    if (s->size > 1)
        EXPECT(kn_group_send(s->group, x, (s->rank + 1) % s->size, .tag = -1) == KN_ERR_ARGUMENT);
    kn_set_requires_grad(x, true);
    EXPECT(kn_group_all_reduce(s->group, x) == KN_ERR_STATE && strstr(kn_error_message(), "KN_NO_GRAD"));
    EXPECT(kn_work_wait(NULL) == KN_ERR_ARGUMENT);
}

/* Only where no other thread uses the stream. */
static void refuses_to_be_recorded(state *s)
{
    if (s->size > 1 || s->device == kn_device_host())
        return;
    kn_tensor *x = kn_ones(KN_SHAPE(3), .device = s->device);
    kn_graph *graph = kn_graph_new();
    EXPECT_OK(kn_graph_capture_begin(graph, NULL));
    EXPECT(kn_group_all_reduce(s->group, x) == KN_ERR_STATE &&
           strstr(kn_error_message(), "all_reduce: a graph cannot record the calls of groups"));
    EXPECT(kn_graph_capture_end(graph) == KN_ERR_STATE);
    EXPECT_OK(kn_group_all_reduce(s->group, x));
    kn_graph_free(graph);
}

/* Even and odd ranks, each in reverse order. */
static void splits(state *s)
{
    kn_group *part = NULL, *none = NULL;
    EXPECT_OK(kn_group_split(s->group, s->rank % 2, -s->rank, &part));
    const int size = (s->size + 1 - s->rank % 2) / 2;
    EXPECT(kn_group_size(part) == size);
    EXPECT(kn_group_rank(part) == size - 1 - s->rank / 2);
    kn_tensor *x = kn_full(KN_SHAPE(2), s->rank, .device = s->device);
    EXPECT_OK(kn_group_all_reduce(part, x, .op = KN_REDUCE_MAX));
    EXPECT(value_at(x, 0) == s->rank % 2 + 2 * (size - 1));
    EXPECT_OK(kn_group_split(s->group, s->rank == 0 ? 3 : -1, 0, &none));
    EXPECT((none != NULL) == (s->rank == 0));
    kn_group_free(none);
    kn_group_free(part);
    EXPECT(strlen(kn_group_host(s->group, s->size - 1)) > 0);
}

int group_cases(kn_group *group, kn_device *device)
{
    static const rank_case cases[] = {
        reduces_every_dtype,
        reduces_bits_means_and_nan,
        reduces_large_and_strided_tensors,
        adds_in_the_order_of_the_ranks,
        reduces_and_broadcasts_from_each_root,
        gathers_and_scatters,
        exchanges_blocks_of_all_sizes,
        starts_several_calls,
        names_calls_that_differ,
        refuses_bad_arguments,
        refuses_outputs_unlike_the_inputs,
        refuses_to_be_recorded,
        splits,
    };
    return run_cases(cases, sizeof cases / sizeof cases[0], group, device) + message_cases(group, device);
}
