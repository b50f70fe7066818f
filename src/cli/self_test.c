/* cli/self_test.c - a few operations of every kind, small enough to take seconds, large enough for several work-groups
 * and partial tiles; on request every operator of the list with its sample, which compiles 400 kernels. */
#include "cli/self_test.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/op_check.h"
#include "cli/op_samples.h"

/* --- what is run -------------------------------------------------------------------------------------------------- */

/* Each case gets values from the device's generator in f32 and returns its last result; the ops within are checked
 * one by one. */

static kn_tensor *run_elementwise(void)
{
    kn_tensor *a = kn_randn(KN_SHAPE(37, 101)), *b = kn_randn(KN_SHAPE(101));
    return kn_relu(kn_mul(kn_add(a, b), kn_exp(kn_neg(a))));
}

static kn_tensor *run_reduction(void)
{
    kn_tensor *x = kn_randn(KN_SHAPE(53, 1031));
    kn_max_dim(x, 1, false, NULL);
    return kn_sum(kn_mean_dims(x, (const int[]){0}, 1, false));
}

static kn_tensor *run_matmul(void) { return kn_matmul(kn_randn(KN_SHAPE(67, 129)), kn_randn(KN_SHAPE(129, 70))); }

static kn_tensor *run_conv2d(void)
{
    kn_tensor *x = kn_randn(KN_SHAPE(3, 5, 17, 19)), *weight = kn_randn(KN_SHAPE(7, 5, 3, 3));
    return kn_conv2d(x, weight, kn_randn(KN_SHAPE(7)), .stride = 2, .padding = 1);
}

static kn_tensor *run_pooling(void)
{
    kn_tensor *x = kn_randn(KN_SHAPE(3, 5, 17, 19));
    return kn_avg_pool2d(kn_max_pool2d(x, .kernel_size = 2), .kernel_size = 3);
}

static kn_tensor *run_softmax(void) { return kn_log_softmax(kn_randn(KN_SHAPE(33, 101)), 1); }

static kn_tensor *run_loss(void)
{
    int64_t classes[33];
    for (int i = 0; i < 33; i++)
        classes[i] = i * 7 % 10;
    return kn_cross_entropy(kn_randn(KN_SHAPE(33, 10)), kn_from_data(classes, KN_SHAPE(33), .dtype = KN_I64));
}

static kn_tensor *run_indexing(void)
{
    int64_t rows[17];
    for (int i = 0; i < 17; i++)
        rows[i] = i * 5 % 11;
    return kn_index_select(kn_randn(KN_SHAPE(11, 29)), 0, kn_from_data(rows, KN_SHAPE(17), .dtype = KN_I64));
}

static kn_tensor *run_scattering(void)
{
    int64_t rows[17 * 29];
    for (int i = 0; i < 17 * 29; i++)
        rows[i] = i * 5 % 11;
    kn_tensor *index = kn_from_data(rows, KN_SHAPE(17, 29), .dtype = KN_I64);
    return kn_scatter_add(kn_randn(KN_SHAPE(11, 29)), 0, index, kn_randn(KN_SHAPE(17, 29)));
}

static kn_tensor *run_sorting(void) { return kn_cumsum(kn_sort(kn_randn(KN_SHAPE(7, 301)), NULL, .dim = 1), 0); }

static kn_tensor *run_norm(void) { return kn_layer_norm(kn_randn(KN_SHAPE(33, 101)), KN_SHAPE(101)); }

static kn_tensor *run_attention(void)
{
    kn_tensor *query = kn_randn(KN_SHAPE(2, 3, 37, 16)), *key = kn_randn(KN_SHAPE(2, 3, 70, 16));
    return kn_scaled_dot_product_attention(query, key, kn_randn(KN_SHAPE(2, 3, 70, 16)));
}

static kn_tensor *(*const cases[])(void) = {
    run_elementwise, run_reduction, run_matmul,     run_conv2d,  run_pooling, run_softmax,
    run_loss,        run_indexing,  run_scattering, run_sorting, run_norm,    run_attention,
};
enum { CASES = sizeof cases / sizeof cases[0] };

static kn_status run_sample(const kn_op *op)
{
    kn_op_sample sample;
    kn_tensor *result = NULL;
    KN_TRY(kn_op_sample_make(&sample, op, KN_F32, false));
    kn_status status = kn_op_call(op, sample.inputs, sample.num_inputs, sample.params, &result, 1);
    kn_op_sample_free(&sample);
    return status;
}

/* The cases above, then the operators of the list, each with its sample. */
static kn_status run_case(int number, kn_device *device)
{
    KN_SCOPE;
    if (number >= CASES)
        KN_TRY(run_sample(kn_op_at(number - CASES)));
    else if (!cases[number]())
        return kn_error_status();
    return kn_synchronize(device);
}

/* --- how it is judged --------------------------------------------------------------------------------------------- */

#define REMEDY_NUMBERS                                                                                                 \
    "update the device's driver (and PoCL: its cache too, ~/.cache/pocl); until then choose another device with "      \
    "--device or "                                                                                                     \
    "KOINE_DEVICE, and report this output"

static void add_problem(kn_diagnosis *diagnosis, const kn_device *device, const char *what, const char *detail,
                        const char *remedy)
{
    if (kn_device_is_lost(device)) { /* whichever step noticed it */
        what = "is lost";
        remedy = "the kernel log (dmesg) says why the driver reset it; update the driver, and reboot if the device "
                 "does not come back";
    }
    kn_diagnosis_add(diagnosis, KN_FINDING_PROBLEM,
                     kn_formatted("%s (%s): %s: %s", kn_device_string(device), kn_device_name(device), what, detail),
                     kn_formatted("%s", remedy));
}

/* 1 MiB to the device and back, unchanged. */
static bool test_copies(kn_diagnosis *diagnosis, kn_device *device)
{
    enum { COUNT = 1 << 18 };
    int32_t *sent = kn_malloc(2 * COUNT * sizeof *sent), *received = sent ? sent + COUNT : NULL;
    kn_status status = sent ? KN_OK : KN_ERR_MEMORY;
    for (int i = 0; i < COUNT && sent; i++) {
        sent[i] = (int32_t)((uint32_t)i * 2654435761u); /* Knuth's multiplicative hash: neighbours differ */
        received[i] = 0;
    }
    if (status == KN_OK) {
        KN_SCOPE;
        kn_tensor *tensor = kn_from_data(sent, KN_SHAPE(COUNT), .dtype = KN_I32, .device = device);
        status = tensor ? kn_read(tensor, received, COUNT * sizeof *received) : kn_error_status();
    }
    bool same = status == KN_OK && memcmp(sent, received, COUNT * sizeof *sent) == 0;
    if (status != KN_OK)
        add_problem(diagnosis, device, "copying to and from the device fails", kn_error_message(),
                    "update the device's driver");
    else if (!same)
        add_problem(diagnosis, device, "copying to and from the device corrupts data", "1 MiB of int32",
                    REMEDY_NUMBERS);
    kn_error_clear();
    kn_free(sent);
    return same;
}

/* Returns how many ops were compared, -1 after a problem. A few operators of the list need float64, which not every
 * device has. */
static int test_case(kn_diagnosis *diagnosis, kn_device *device, bool has_f64, int number)
{
    kn_op_check check = {0};
    kn_op_check_begin(&check);
    kn_status status = run_case(number, device);
    kn_op_check_end(&check);
    if (status == KN_ERR_DTYPE && !has_f64 && number >= CASES)
        status = KN_OK;
    if (status != KN_OK)
        add_problem(diagnosis, device, "an operation fails", kn_error_message(),
                    "update the driver if it is the cause; report this output if a kernel does not build");
    else if (check.wrong[0]) {
        char what[64];
        snprintf(what, sizeof what, "wrong results from %s", check.wrong);
        add_problem(diagnosis, device, what, check.difference, REMEDY_NUMBERS);
    }
    kn_error_clear();
    return status != KN_OK || check.wrong[0] ? -1 : check.checked;
}

/* A small network: convolution, ReLU, pooling, a linear layer and a softmax. */
static kn_tensor *gradient_function(kn_tensor *const *inputs, void *user)
{
    (void)user;
    kn_tensor *maps = kn_relu(kn_conv2d(inputs[0], inputs[1], inputs[2], .padding = 1));
    kn_tensor *features = kn_flatten(kn_max_pool2d(maps, .kernel_size = 2), 1, -1);
    return kn_log_softmax(kn_matmul(features, inputs[3]), 1);
}

static bool test_gradient(kn_diagnosis *diagnosis, kn_device *device)
{
    kn_status status = KN_ERR_INTERNAL;
    {
        KN_SCOPE;
        kn_tensor *inputs[] = {
            kn_randn(KN_SHAPE(2, 2, 4, 3), .dtype = KN_F64, .requires_grad = true),
            kn_randn(KN_SHAPE(2, 2, 3, 3), .dtype = KN_F64, .requires_grad = true),
            kn_randn(KN_SHAPE(2), .dtype = KN_F64, .requires_grad = true),
            kn_randn(KN_SHAPE(4, 3), .dtype = KN_F64, .requires_grad = true),
        };
        status = kn_gradcheck(gradient_function, NULL, inputs, 4, NULL);
    }
    if (status != KN_OK)
        add_problem(diagnosis, device, "wrong gradients", kn_error_message(), REMEDY_NUMBERS);
    kn_error_clear();
    return status == KN_OK;
}

void kn_self_test(kn_diagnosis *diagnosis, kn_device *device, bool every_operator)
{
    kn_device_properties properties;
    const int count_all = CASES + (every_operator ? kn_op_count() : 0);
    int compared = 0;
    if (kn_device_open(kn_device_string(device)) == NULL || kn_device_set_current(device) != KN_OK ||
        kn_device_get_properties(device, &properties) != KN_OK) {
        add_problem(diagnosis, device, "cannot be opened", kn_error_message(),
                    "another program may be using the device or its memory; if not, update the driver");
        kn_error_clear();
        return;
    }
    kn_manual_seed(1); /* reproducible findings */
    bool good = test_copies(diagnosis, device);
    for (int i = 0; i < count_all && !kn_device_is_lost(device); i++) {
        int count = test_case(diagnosis, device, properties.has_f64, i);
        good = good && count >= 0;
        compared += count > 0 ? count : 0;
    }
    if (properties.has_f64 && !kn_device_is_lost(device))
        good = test_gradient(diagnosis, device) && good;
    if (good)
        kn_diagnosis_add(diagnosis, KN_FINDING_GOOD,
                         kn_formatted("%s (%s): %d operations agree with their references%s", kn_device_string(device),
                                      kn_device_name(device), compared,
                                      properties.has_f64 ? ", gradients with finite differences" : ""),
                         NULL);
}
