/* train/resume.h - the layout of last.safetensors, for the files that write and read it. */
#pragma once

#include "train/trainer.h"

#define KN_LAST_FILE "last.safetensors"
#define KN_LAST_FORMAT "training state 2" /* metadata "koine" */

#define KN_REPLICA_STATES "trainer.rng.replicas"
#define KN_RANK_STATES "trainer.rng.ranks"

/* Tensors: "module.NAME", "optim.NAME" and, once there is a best epoch, "best.NAME"; "trainer.course", float64 as
 * below; "trainer.history", float64 [epochs, columns], and, if steps are logged, "trainer.steps" and
 * "trainer.histograms" likewise; "trainer.rng", the generator's state, and "trainer.rng.replicas", [devices - 1,
 * bytes], if the module runs on several devices, and "trainer.rng.ranks", [ranks, bytes], if several ranks train;
 * the states of callbacks (callbacks.c); "scheduler.state", if there is
 * a schedule; "scaler.scale" and "scaler._growth_tracker", if gradients are scaled. Metadata "monitor", "mode" and
 * "columns", and "setting.NAME" (settings.c). */
enum {
    KN_PROGRESS_EPOCH,
    KN_PROGRESS_BEST_EPOCH,
    KN_PROGRESS_BEST_VALUE,
    KN_PROGRESS_SINCE_BEST,
    KN_PROGRESS_GLOBAL_STEP,
    KN_PROGRESS_NUMBERS
};
