/* ops/gemm/block_rates.c - the relative speed of block shapes on a device, as measured by `koine tune`. */
#include <koine/device.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/threads.h"
#include "ops/gemm/blocked.h"
#include "rt/tuning/tuning.h"

const char *kn_block_question(kn_block_arithmetic arithmetic)
{
    static const char *const questions[] = {"blocks of products, f32", "blocks of products, f64",
                                            "blocks of products, TF32", "blocks of products, f16"};
    return questions[arithmetic];
}

const char *kn_block_name(char buffer[KN_BLOCK_NAME], const kn_block_shape *s)
{
    snprintf(buffer, KN_BLOCK_NAME, "%dx%dx%d %dx%d", s->rows, s->columns, s->k_step, s->item_rows, s->item_columns);
    return buffer;
}

static void usual_rates(double rates[KN_BLOCK_SHAPES])
{
    for (int i = 0; kn_block_shape_at(i); i++)
        rates[i] = kn_block_shape_at(i)->efficiency;
}

/* Shapes that were not timed, or failed, get 0. An unfinished measurement is ignored: a shape not yet timed may be the
 * best. */
static void measured_rates(double rates[KN_BLOCK_SHAPES], kn_device *device, kn_block_arithmetic arithmetic)
{
    kn_tuning_result result;
    double best = HUGE_VAL, seconds[KN_BLOCK_SHAPES];
    char name[KN_BLOCK_NAME];
    const bool found = kn_tuning_find(&result, device, kn_block_question(arithmetic)) && result.complete;
    for (int i = 0; found && kn_block_shape_at(i); i++) {
        seconds[i] = kn_tuning_seconds(&result, kn_block_name(name, kn_block_shape_at(i)));
        if (seconds[i] > 0 && seconds[i] < best)
            best = seconds[i];
    }
    for (int i = 0; best < HUGE_VAL && kn_block_shape_at(i); i++)
        rates[i] = seconds[i] > 0 ? best / seconds[i] : 0;
    if (!(best < HUGE_VAL))
        usual_rates(rates);
    kn_tuning_free(&result);
}

/* Needed at each launch, so cached until the results change. */
static kn_mutex lock = KN_MUTEX_INIT;
static struct {
    unsigned generation; /* of the results behind `rates`; 0: none yet */
    double rates[KN_BLOCK_SHAPES];
} kept[KN_MAX_DEVICES][KN_BLOCK_F16 + 1];

void kn_block_rates(double rates[KN_BLOCK_SHAPES], const kn_limits *limits, kn_block_arithmetic arithmetic)
{
    kn_device *device = limits->slot > 0 ? kn_device_at(limits->slot - 1) : NULL;
    if (!device) {
        usual_rates(rates);
        return;
    }
    kn_lock(&lock);
    const unsigned now = kn_tuning_generation();
    if (kept[limits->slot][arithmetic].generation != now) {
        measured_rates(kept[limits->slot][arithmetic].rates, device, arithmetic);
        kept[limits->slot][arithmetic].generation = now;
    }
    memcpy(rates, kept[limits->slot][arithmetic].rates, sizeof kept[limits->slot][arithmetic].rates);
    kn_unlock(&lock);
}
