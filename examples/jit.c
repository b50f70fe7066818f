/* jit.c - an activation written in a few lines of OpenCL C, with its derivative, compared with the same made of the
 * library's operations: y = gelu(x * scale + bias), where scale and bias are one number per column. One kernel reads x
 * once and writes y once; the composed version makes a dozen passes over memory. */
#include <koine/koine.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/options.h"
#include "common/side_by_side.h"

static const char program[] = "jit";

/* gelu(u) = u (1 + tanh(s)) / 2 with s = sqrt(2/pi) (u + 0.044715 u^3) */
static const char code[] = "T inner(T u) { return 0.7978845608 * (u + 0.044715 * u * u * u); }\n"
                           "T scaled_gelu(T x, T scale, T bias)\n"
                           "{\n"
                           "    T u = x * scale + bias;\n"
                           "    return 0.5 * u * (1 + tanh(inner(u)));\n"
                           "}\n";
static const char derivative[] = "void scaled_gelu_backward(T x, T scale, T bias, T grad,\n"
                                 "                          T *grad_x, T *grad_scale, T *grad_bias)\n"
                                 "{\n"
                                 "    T u = x * scale + bias, t = tanh(inner(u));\n"
                                 "    T slope = 0.7978845608 * (1 + 0.134145 * u * u);\n"
                                 "    T grad_u = grad * 0.5 * (1 + t + u * (1 - t * t) * slope);\n"
                                 "    *grad_x = grad_u * scale;\n"
                                 "    *grad_scale = grad_u * x;\n"
                                 "    *grad_bias = grad_u;\n"
                                 "}\n";

typedef struct settings {
    const char *device;
    int64_t rows, columns, repeat, seed;
} settings;

/* x, scale, bias */
enum { INPUTS = 3 };
typedef kn_tensor *activation(kn_tensor *const *inputs, kn_jit *jit);

static kn_tensor *fused(kn_tensor *const *inputs, kn_jit *jit) { return kn_jit_call_with(jit, inputs, INPUTS, NULL); }

static kn_tensor *composed(kn_tensor *const *inputs, kn_jit *jit)
{
    (void)jit;
    kn_tensor *u = kn_add(kn_mul(inputs[0], inputs[1]), inputs[2]);
    kn_tensor *cube = kn_mul_scalar(kn_mul(kn_mul(u, u), u), 0.044715);
    kn_tensor *t = kn_tanh(kn_mul_scalar(kn_add(u, cube), 0.7978845608));
    return kn_mul(kn_mul_scalar(u, 0.5), kn_add_scalar(t, 1));
}

/* --- measuring ------------------------------------------------------------------------------------------------- */

typedef struct result {
    double forward, step;             /* seconds: without gradients; with backward */
    kn_tensor *y, *gradients[INPUTS]; /* retained */
} result;

static bool once(activation *function, kn_tensor *const *inputs, kn_jit *jit, double *seconds)
{
    double started = seconds_now();
    bool done = false;
    {
        KN_SCOPE;
        KN_NO_GRAD;
        done = function(inputs, jit) && kn_synchronize(kn_device_of(inputs[0])) == KN_OK;
    }
    *seconds = seconds_now() - started;
    return done;
}

static bool step(activation *function, kn_tensor *const *inputs, kn_jit *jit, kn_tensor *weights, result *r,
                 double *seconds)
{
    bool done = true;
    for (int i = 0; i < INPUTS; i++)
        kn_set_grad(inputs[i], NULL);
    double started = seconds_now();
    {
        KN_SCOPE;
        kn_tensor *y = function(inputs, jit);
        done = y && kn_backward_with(y, weights, false) == KN_OK && kn_synchronize(kn_device_of(y)) == KN_OK;
        kn_release(r->y);
        r->y = kn_retain(kn_detach(y));
    }
    *seconds = seconds_now() - started;
    return done;
}

static bool measure(const settings *s, activation *function, kn_tensor *const *inputs, kn_jit *jit, kn_tensor *weights,
                    result *r)
{
    double seconds;
    bool done = true;
    r->forward = r->step = HUGE_VAL;
    for (int64_t i = 0; done && i <= s->repeat; i++) { /* the first builds the kernels */
        done = once(function, inputs, jit, &seconds);
        r->forward = i > 0 ? fmin(r->forward, seconds) : HUGE_VAL;
        done = done && step(function, inputs, jit, weights, r, &seconds);
        r->step = i > 0 ? fmin(r->step, seconds) : HUGE_VAL;
    }
    for (int i = 0; done && i < INPUTS; i++)
        r->gradients[i] = kn_retain(kn_grad(inputs[i]));
    return done;
}

/* The largest |a - b| over the largest |b|. */
static bool difference(kn_tensor *a, kn_tensor *b, double *worst)
{
    double gap = 0, size = 0;
    bool done = false;
    {
        KN_SCOPE;
        KN_NO_GRAD;
        done = kn_item(kn_max(kn_abs(kn_sub(a, b))), &gap) == KN_OK && kn_item(kn_max(kn_abs(b)), &size) == KN_OK;
    }
    *worst = fmax(*worst, gap / size);
    return done;
}

static void release(result *r)
{
    kn_release(r->y);
    for (int i = 0; i < INPUTS; i++)
        kn_release(r->gradients[i]);
}

/* --- one device ------------------------------------------------------------------------------------------------ */

static bool compare(const settings *s, kn_device *device, kn_jit *jit, kn_tensor *const *inputs, kn_tensor *weights,
                    double *worst)
{
    result by_jit = {0}, by_ops = {0};
    bool done = measure(s, fused, inputs, jit, weights, &by_jit) && measure(s, composed, inputs, jit, weights, &by_ops);
    done = done && difference(by_jit.y, by_ops.y, worst);
    for (int i = 0; done && i < INPUTS; i++)
        done = difference(by_jit.gradients[i], by_ops.gradients[i], worst);
    if (done)
        printf("%-8s %12.3f %12.3f %12.3f %12.3f %12.1e\n", kn_device_string(device), 1e3 * by_jit.forward,
               1e3 * by_ops.forward, 1e3 * by_jit.step, 1e3 * by_ops.step, *worst);
    release(&by_jit);
    release(&by_ops);
    return done;
}

static bool run_on(const settings *s, kn_device *device, double *worst)
{
    bool done = kn_device_set_current(device) == KN_OK;
    kn_manual_seed((uint64_t)s->seed);
    kn_jit *jit = done ? kn_jit_elementwise(code, .derivative = derivative) : NULL;
    {
        KN_SCOPE;
        kn_tensor *inputs[INPUTS] = {kn_randn(KN_SHAPE(s->rows, s->columns), .requires_grad = true),
                                     kn_randn(KN_SHAPE(s->columns), .requires_grad = true),
                                     kn_randn(KN_SHAPE(s->columns), .requires_grad = true)};
        kn_tensor *weights = kn_randn(KN_SHAPE(s->rows, s->columns));
        done = jit && inputs[0] && inputs[1] && inputs[2] && weights && compare(s, device, jit, inputs, weights, worst);
    }
    kn_jit_free(jit);
    return done;
}

int main(int argc, char **argv)
{
    settings s = {.rows = 8192, .columns = 768, .repeat = 5};
    const option options[] = {
        {"--device", "D", OPTION_TEXT, &s.device, 0, 0,
         "this device only; otherwise the CPU device and the GPU, side by side"},
        {"--rows", "N", OPTION_WHOLE, &s.rows, 1, 1e6, "of x"},
        {"--columns", "N", OPTION_WHOLE, &s.columns, 1, 1e6, "of x; as many scales and biases"},
        {"--repeat", "N", OPTION_WHOLE, &s.repeat, 1, 1e6, "runs after the first, the fastest of which counts"},
        {"--seed", "N", OPTION_WHOLE, &s.seed, 0, 9e18, "seed of the random values"},
    };
    int usage = options_parse(program,
                              "Runs gelu(x * scale + bias) as one kernel made from a few lines of code, and as "
                              "a chain of operations.",
                              options, OPTION_COUNT(options), argc, argv);
    if (usage != OPTIONS_GO_ON)
        return usage;
    kn_device *devices[MAX_DEVICES];
    double worst = 0;
    int count = devices_to_compare(devices, s.device), done = 0;
    printf("gelu(x * scale + bias), x [%lld, %lld]; milliseconds\n", (long long)s.rows, (long long)s.columns);
    printf("%-8s %12s %12s %12s %12s %12s\n", "device", "fused", "composed", "fused+grad", "composed+grad",
           "difference");
    while (done < count && run_on(&s, devices[done], &worst))
        done++;
    if (count == 0 || done < count) {
        fprintf(stderr, "%s: %s\n", program, kn_error_message());
        return 1;
    }
    if (!(worst < 1e-4))
        fprintf(stderr, "%s: the results differ by more than rounding\n", program);
    return options_finish(program, worst < 1e-4 ? 0 : 1);
}
