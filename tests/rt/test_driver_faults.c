/* test_driver_faults.c - each OpenCL call fails in turn, by name and number, during training: the error is reported
 * without leaks, or the library recovers and the result is correct. Calls made only at process start are tested in
 * test_driver_faults_programs.c. The layer is support/fail_cl.c.
 *
 * By default tries some numbers of each name, with one error; --long tries all, with several. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "rt_test.h"
#include "support/fail_cl.h"
#include "support/faults.h"

#define SECONDS_EACH 60 /* longer means hanging */
#define OUT_OF_RESOURCES (-5)

static fail_cl layer;
static bool all; /* --long */
static char trying[160];

static void hangs(int number)
{
    (void)number;
    static const char text[] = "this hangs: ";
    if (write(2, text, sizeof text - 1) < 0 || write(2, trying, strlen(trying)) < 0)
        _exit(2);
    _exit(1);
}

static const int errors[] = {OUT_OF_RESOURCES, -6 /* no host memory */, -4 /* no device memory */, -30 /* value */};

/* --- in this process ---------------------------------------------------------------------------------------------- */

typedef struct subject {
    kn_device *device;
    kn_module *net;
    kn_optim *optim;
    kn_dataset *data;
    kn_tensor *x, *y;
    char path[64];
    double expected; /* the work's result without faults */
    bool is_known;
} subject;

/* Returns the same number each time, or an error. */
static kn_status check_result(subject *s, kn_tensor *result)
{
    double value = 0;
    kn_status status = result ? kn_item(result, &value) : fault_status(false);
    if (status != KN_OK)
        return status;
    if (!s->is_known)
        s->expected = value;
    s->is_known = true;
    if (value != s->expected)
        fail_msg("%s: the result is %.9g, not %.9g", trying, value, s->expected);
    return KN_OK;
}

static kn_tensor *input(void) { return kn_mul_scalar(kn_arange(0, 4 * 1 * 6 * 6, 1, .dtype = KN_F32), 1.0 / 128); }

static kn_tensor *loss_of(const subject *s)
{
    return kn_cross_entropy(kn_forward(s->net, kn_reshape(s->x, KN_SHAPE(4, 1, 6, 6))), s->y);
}

/* Forward, backward and an optimizer step, with learning rate 0 so that the weights do not change. */
static kn_status step(void *user)
{
    subject *s = user;
    kn_tensor *loss = loss_of(s);
    kn_status status = kn_backward(loss);
    if (status == KN_OK)
        status = kn_optim_step(s->optim);
    if (status == KN_OK)
        status = check_result(s, loss);
    kn_optim_zero_grad(s->optim);
    return status;
}

static kn_status graph(void *user)
{
    subject *s = user;
    kn_graph *graph = NULL;
    kn_tensor *loss = NULL;
    kn_status status = kn_status_of(graph = kn_graph_new());
    if (status == KN_OK)
        status = kn_graph_capture_begin(graph, NULL);
    if (status == KN_OK) {
        {
            KN_SCOPE;
            KN_NO_GRAD;
            loss = kn_retain(loss_of(s));
        }
        status = kn_graph_capture_end(graph);
    }
    for (int i = 0; i < 3 && status == KN_OK; i++)
        status = kn_graph_replay(graph);
    if (status == KN_OK)
        status = check_result(s, loss);
    kn_graph_free(graph);
    kn_release(loss);
    return status;
}

static kn_status sum_batches(kn_loader *loader, kn_tensor **sum)
{
    *sum = kn_zeros(KN_SHAPE(1));
    kn_status status = *sum ? kn_loader_start(loader, 0) : fault_status(false);
    while (status == KN_OK) {
        const kn_batch *batch;
        status = kn_loader_next(loader, &batch);
        if (status != KN_OK || !batch)
            break;
        *sum = kn_add(*sum, kn_add(kn_sum(batch->input), kn_sum(kn_to_dtype(batch->target, KN_F32))));
        status = fault_status(*sum != NULL);
    }
    return status;
}

static kn_status loader(void *user)
{
    subject *s = user;
    kn_loader *made = NULL;
    kn_tensor *sum = NULL;
    kn_status status =
        kn_status_of(made = kn_loader_new(s->data, .batch_size = 8, .num_workers = 2, .pin_memory = true));
    if (status == KN_OK)
        status = sum_batches(made, &sum);
    if (status == KN_OK)
        status = check_result(s, sum);
    kn_loader_free(made);
    return status;
}

static kn_status saving(void *user)
{
    subject *s = user;
    kn_status status = kn_module_save(s->net, s->path);
    if (status == KN_OK)
        status = kn_module_load(s->net, s->path);
    if (status == KN_OK)
        status = kn_optim_save(s->optim, s->path);
    if (status == KN_OK)
        status = kn_optim_load(s->optim, s->path);
    if (status != KN_OK)
        return status;
    KN_NO_GRAD;
    return check_result(s, loss_of(s));
}

/* Two streams, events between them, a callback, memory that both use. */
static void count(void *user) { ++*(int *)user; }

static kn_status streams(void *user)
{
    subject *s = user;
    kn_stream *one = NULL;
    kn_event *event = NULL;
    kn_tensor *sum = NULL;
    int called = 0;
    kn_status status = kn_status_of(one = kn_stream_new(s->device));
    if (status == KN_OK)
        status = kn_status_of(event = kn_event_new(s->device));
    if (status == KN_OK) {
        KN_STREAM(one);
        sum = kn_sum(input());
        status = fault_status(sum != NULL);
    }
    if (status == KN_OK)
        status = kn_event_record(event, one);
    if (status == KN_OK)
        status = kn_stream_add_callback(one, count, &called);
    if (status == KN_OK)
        status = kn_stream_wait_event(kn_stream_default(s->device), event);
    if (status == KN_OK)
        status = check_result(s, kn_add(sum, sum));
    if (status == KN_OK)
        status = kn_synchronize(s->device);
    if (status == KN_OK)
        assert_int_equal(called, 1);
    kn_event_free(event);
    kn_status gone = kn_stream_free(one);
    if (gone != KN_OK) { /* the injected failure */
        KN_PRESERVE_ERROR;
        assert_int_equal(kn_stream_free(one), KN_OK);
    }
    return status == KN_OK ? gone : status;
}

/* To another device and back, through host memory. */
static kn_status transfer(void *user)
{
    subject *s = user;
    kn_device *other = kn_device_at(1);
    kn_tensor *there = kn_to(input(), other), *back = kn_to(kn_add(there, there), s->device);
    kn_status status = check_result(s, kn_sum(back));
    kn_status end = kn_synchronize(other);
    return status == KN_OK ? end : status;
}

static subject make_subject(void)
{
    subject s = {.device = test_device()};
    static float x[40][5];
    static int64_t y[40];
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < 5; j++)
            x[i][j] = (float)(i + j);
        y[i] = i % 3;
    }
    kn_manual_seed(1);
    s.net = kn_nn_sequential(kn_nn_conv2d(.in_channels = 1, .out_channels = 2, .kernel_size = 3), kn_nn_relu(),
                             kn_nn_max_pool2d(.kernel_size = 2), kn_nn_flatten(),
                             kn_nn_linear(.in_features = 8, .out_features = 3));
    s.optim = kn_optim_adam(kn_module_parameters(s.net), .lr = 0);
    s.y = kn_zeros(KN_SHAPE(4), .dtype = KN_I64);
    KN_SCOPE;
    s.x = kn_retain(input());
    assert_new(s.data = kn_tensor_dataset(kn_from_data(x, KN_SHAPE(40, 5), .device = kn_device_host()),
                                          kn_from_data(y, KN_SHAPE(40), .dtype = KN_I64, .device = kn_device_host())));
    snprintf(s.path, sizeof s.path, "/tmp/koine-faults-%ld.safetensors", (long)getpid());
    return s;
}

/* Runs the work with one call failing; returns whether that call was reached. */
static bool fail_one(fault_work work, subject *s, int name, long nth, int error)
{
    snprintf(trying, sizeof trying, "%s %ld with %d", layer.name(name), nth, error);
    alarm(SECONDS_EACH);
    layer.plan(name, nth, error);
    kn_status status = fault_run(work, s, trying);
    bool came = layer.has_failed();
    layer.plan(0, 0, 0);
    if (!came && status != KN_OK)
        fail_msg("%s: not reached, but %s", trying, kn_status_name(status));
    return came;
}

/* Each call that the work makes. */
static void fail_each(fault_work work)
{
    subject s = make_subject();
    fault_none(work, &s, "kernels are built");
    kn_synchronize(s.device);
    uint64_t held = kn_memory_allocated(s.device);
    long counts[FAIL_CL_NAMES] = {0};
    layer.plan(0, 0, 0);
    fault_none(work, &s, "no fault");
    for (int name = 0; layer.name(name); name++)
        counts[name] = layer.count(name);
    int tried = 0;
    for (int name = 0; layer.name(name); name++)
        for (long n = 1; n <= counts[name]; n = fail_cl_next(n, counts[name], all))
            for (size_t e = 0; e < (all ? sizeof errors / sizeof errors[0] : 1); e++) {
                tried += fail_one(work, &s, name, n, errors[e]);
                fault_none(work, &s, trying); /* must succeed again */
                kn_synchronize(s.device);
                if (kn_memory_allocated(s.device) != held)
                    fail_msg("%s: %llu bytes of device memory are left", trying,
                             (unsigned long long)(kn_memory_allocated(s.device) - held));
            }
    alarm(0);
    print_message("%d failing calls\n", tried);
    assert_true(tried > 10);
    kn_optim_free(s.optim);
    kn_module_free(s.net);
    kn_dataset_free(s.data);
    kn_release(s.x);
    kn_release(s.y);
    unlink(s.path);
}

static void training_steps(void **state)
{
    (void)state;
    fail_each(step);
}

static void graphs(void **state)
{
    (void)state;
    fail_each(graph);
}

static void loaders(void **state)
{
    (void)state;
    fail_each(loader);
}

static void saving_and_loading(void **state)
{
    (void)state;
    fail_each(saving);
}

static void streams_and_events(void **state)
{
    (void)state;
    fail_each(streams);
}

static void transfers(void **state)
{
    (void)state;
    if (!two_cpu_devices())
        skip();
    fail_each(transfer);
}

int main(int argc, char **argv)
{
    all = argc > 1 && strcmp(argv[1], "--long") == 0;
    setenv("OPENCL_LAYERS", FAIL_LAYER, 1);
    signal(SIGALRM, hangs);
    if (kn_device_count() == 0 || !fail_cl_open(&layer, FAIL_LAYER)) {
        fprintf(stderr, "no device, or a loader without layers\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_steps),
        cmocka_unit_test(graphs),
        cmocka_unit_test(loaders),
        cmocka_unit_test(saving_and_loading),
        cmocka_unit_test(streams_and_events),
        cmocka_unit_test(transfers),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
