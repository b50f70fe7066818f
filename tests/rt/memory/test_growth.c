/* test_growth.c - creating, using and destroying objects repeatedly does not leak: neither host heap, including the
 * driver's, nor device memory reserved by the pool. */
#include <malloc.h>

#include "rt/rt_test.h"

#define WARM_UP 60
#define ROUNDS 120

typedef struct subject {
    kn_device *device;
    kn_module *net;
    kn_optim *optim;
    kn_dataset *data;
    kn_loader *batches;
} subject;

static size_t heap_bytes(void) { return mallinfo2().uordblks + mallinfo2().hblkhd; }

/* --- objects ---------------------------------------------------------------------------------- */

static void use_some_memory(void)
{
    kn_tensor *small = kn_ones(KN_SHAPE(1000)), *large = kn_ones(KN_SHAPE(700, 1000));
    assert_non_null(kn_add(small, kn_sum(large)));
}

static void stream(subject *s)
{
    kn_stream *made = kn_stream_new(s->device);
    assert_new(made);
    {
        KN_STREAM(made);
        use_some_memory();
    }
    assert_ok(kn_stream_synchronize(made));
    assert_ok(kn_stream_free(made));
}

/* Its memory is freed later. */
static void stream_with_a_legacy(subject *s)
{
    kn_stream *made;
    kn_tensor *kept;
    assert_new(made = kn_stream_new_with_priority(s->device, 1));
    {
        KN_STREAM(made);
        use_some_memory();
        kept = kn_ones(KN_SHAPE(1000));
    }
    assert_ok(kn_stream_synchronize(made));
    assert_ok(kn_stream_free(made));
    assert_non_null(kn_add(kept, kept));
}

static void event(subject *s)
{
    kn_event *made = kn_event_new(s->device);
    assert_new(made);
    assert_ok(kn_event_record(made, NULL));
    assert_ok(kn_event_synchronize(made));
    kn_event_free(made);
}

static void graph(subject *s)
{
    (void)s;
    kn_graph *made;
    kn_tensor *x = kn_ones(KN_SHAPE(300)), *y = NULL;
    assert_new(made = kn_graph_new());
    assert_ok(kn_graph_capture_begin(made, NULL));
    for (int i = 0; i < 10; i++)
        y = kn_add(y ? y : x, x);
    assert_ok(kn_graph_capture_end(made));
    assert_ok(kn_graph_replay(made));
    assert_ok(kn_graph_replay(made));
    assert_ok(kn_synchronize(s->device));
    kn_graph_free(made);
}

static void loader(subject *s)
{
    kn_loader *made;
    const kn_batch *batch;
    assert_new(made = kn_loader_new(s->data, .batch_size = 8, .num_workers = 2, .pin_memory = true));
    assert_ok(kn_loader_start(made, 0));
    do
        assert_ok(kn_loader_next(made, &batch));
    while (batch);
    kn_loader_free(made);
}

static void trainer(subject *s)
{
    kn_trainer *made = kn_trainer_new(.module = s->net, .optim = s->optim, .epochs = 1, .quiet = true);
    assert_new(made);
    assert_ok(kn_trainer_fit(made, s->batches, s->batches));
    kn_trainer_free(made);
}

static void private_pool(subject *s)
{
    kn_mem_pool *made = kn_mem_pool_new(s->device);
    assert_new(made);
    {
        KN_MEM_POOL(made);
        KN_SCOPE;
        use_some_memory();
    }
    kn_mem_pool_free(made);
}

static void pinned_tensor(subject *s)
{
    (void)s;
    kn_tensor *made = kn_pin_memory(kn_to(kn_ones(KN_SHAPE(3000)), kn_device_host()));
    assert_non_null(kn_to_device(made, s->device, .non_blocking = true));
}

static void kernel(subject *s)
{
    (void)s;
    kn_user_kernel *made;
    kn_tensor *x = kn_ones(KN_SHAPE(10));
    assert_new(made = kn_kernel_new("#include \"common/koine.clh\"\n"
                                    "kernel void twice(KN_INOUT(x)) { KN_BIND_OUT(float, x); x[0] *= 2; }\n",
                                    "twice", NULL));
    assert_ok(kn_kernel_run(made, KN_KERNEL_ARGS(kn_kernel_output(x)), .global = {1}));
    kn_kernel_free(made);
}

static void jit(subject *s)
{
    (void)s;
    kn_jit *made = kn_jit_elementwise("T thrice(T x) { return 3 * x; }");
    assert_non_null(kn_jit_call(made, KN_JIT_INPUTS(kn_ones(KN_SHAPE(10)))));
    kn_jit_free(made);
}

static void profile(subject *s)
{
    (void)s;
    assert_ok(kn_profiler_start(.active = 0));
    use_some_memory();
    assert_ok(kn_profiler_stop());
    kn_free(kn_profiler_table(.row_limit = 5));
}

static const struct {
    const char *name;
    void (*use)(subject *s);
} objects[] = {
    {"stream", stream},     {"stream with a legacy", stream_with_a_legacy},
    {"event", event},       {"graph", graph},
    {"loader", loader},     {"trainer", trainer},
    {"pool", private_pool}, {"pinned tensor", pinned_tensor},
    {"kernel", kernel},     {"jit", jit},
    {"profile", profile},
};

/* --- the test --------------------------------------------------------------------------------- */

static void use(subject *s, size_t object)
{
    KN_SCOPE;
    objects[object].use(s);
}

/* The growth per round of the heap, with fluctuations averaged out. */
static long growth(subject *s, size_t object)
{
    for (int i = 0; i < WARM_UP; i++)
        use(s, object);
    kn_synchronize(s->device);
    uint64_t reserved = kn_memory_reserved(s->device);
    size_t before = heap_bytes();
    for (int i = 0; i < ROUNDS; i++)
        use(s, object);
    kn_synchronize(s->device);
    long bytes = (long)(heap_bytes() - before) / ROUNDS;
    long device = (long)(kn_memory_reserved(s->device) - reserved);
    print_message("%-22s %6ld bytes of heap a round, %ld of the device in all\n", objects[object].name, bytes, device);
    if (device > 0)
        fail_msg("%s: %ld more bytes of the device are reserved", objects[object].name, device);
    return bytes;
}

/* More than a driver does whose own caches are still filling (rusticl: for some 200 rounds). */
enum { MOST_BYTES = 200, TRIES = 3 };
static bool grows(subject *s, size_t object)
{
    for (int i = 0; i < TRIES; i++)
        if (growth(s, object) <= MOST_BYTES)
            return false;
    return true;
}

static subject make_subject(void)
{
    subject s = {.device = test_device()};
    KN_SCOPE;
    s.net = kn_nn_linear(.in_features = 5, .out_features = 3);
    s.optim = kn_optim_sgd(kn_module_parameters(s.net), .lr = 0.01);
    kn_tensor *x = kn_ones(KN_SHAPE(40, 5), .device = kn_device_host()),
              *y = kn_zeros(KN_SHAPE(40), .dtype = KN_I64, .device = kn_device_host());
    assert_new(s.data = kn_tensor_dataset(x, y));
    assert_new(s.batches = kn_loader_new(s.data, .batch_size = 8));
    return s;
}

static void nothing_grows(void **state)
{
    (void)state;
    subject s = make_subject();
    bool grew = false;
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        grew |= grows(&s, i);
    kn_loader_free(s.batches);
    kn_dataset_free(s.data);
    kn_optim_free(s.optim);
    kn_module_free(s.net);
    assert_false(grew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_grows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
