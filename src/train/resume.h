/* train/resume.h - the layout of last.safetensors, for the two files that write and read it. */
#ifndef KN_TRAIN_RESUME_H
#define KN_TRAIN_RESUME_H

#include "train/trainer.h"

#define KN_LAST_FILE "last.safetensors"
#define KN_LAST_FORMAT "training state 1" /* metadata "koine" */

#define KN_REPLICA_STATES "trainer.rng.replicas"

/* Tensors: "module.NAME", "optim.NAME" and, once there is a best epoch, "best.NAME"; "trainer.course", float64 as
 * below; "trainer.history", float64 [epochs, columns], and, where steps are logged, "trainer.steps" and
 * "trainer.histograms" likewise; "trainer.rng", the generator's state, and "trainer.rng.replicas", [devices - 1,
 * bytes], where the module runs on several devices. Metadata "monitor" and "mode" besides. */
enum { KN_COURSE_EPOCH, KN_COURSE_BEST_EPOCH, KN_COURSE_BEST_VALUE, KN_COURSE_SINCE_BEST, KN_COURSE_NUMBERS };

char *kn_best_name(const char *name); /* "best.NAME"; the caller frees it */

#endif
