/* koine/generator.h - random number generators: torch.Generator.
 *
 * Each device has a default generator (koine/random.h). With a generator of its own, a part of a program draws numbers
 * that do not depend on draws elsewhere:
 *
 *     kn_generator *g = kn_generator_new(device);
 *     kn_generator_manual_seed(g, 42);
 *     kn_tensor *noise = kn_randn(KN_SHAPE(8, 8), .device = device, .generator = g);
 *     y = kn_dropout(x, .p = 0.1, .generator = g);
 *     kn_generator_free(g);
 *
 * A generator is for tensors of its device; others are KN_ERR_DEVICE. It consists of a seed and an offset: generators
 * with the same seed and offset draw the same numbers. Thread-safe; the order of draws from several threads is
 * undefined. Graphs captured with a generator keep it alive and advance it with each replay. */
#ifndef KOINE_GENERATOR_H
#define KOINE_GENERATOR_H

#include <koine/common.h>
#include <koine/status.h>

KN_BEGIN_DECLS

#define KN_RNG_STATE_SIZE 16 /* bytes: seed, offset, both little-endian */

/* A new generator with the default seed (67280421310721) and offset 0; `device` NULL: the calling thread's current
 * device. The caller frees it. NULL with a sticky error on failure. */
KN_API kn_generator *kn_generator_new(kn_device *device);
KN_API kn_generator *kn_generator_clone(const kn_generator *generator); /* an independent copy */
KN_API void kn_generator_free(kn_generator *generator);                 /* no effect for NULL and default generators */

/* The device's default generator; borrowed. `device` NULL: the current one. */
KN_API kn_generator *kn_generator_default(kn_device *device);

KN_API kn_device *kn_generator_device(const kn_generator *generator); /* NULL for NULL */

/* Set the seed, and the offset to 0. kn_generator_seed uses a random seed from the system and stores it in `seed`,
 * unless that is NULL. */
KN_API kn_status kn_generator_manual_seed(kn_generator *generator, uint64_t seed);
KN_API kn_status kn_generator_seed(kn_generator *generator, uint64_t *seed);
KN_API uint64_t kn_generator_initial_seed(const kn_generator *generator); /* the seed; 0 with an error for NULL */

/* The state: kn_generator_set_state repeats the draws that followed kn_generator_get_state. */
KN_API kn_status kn_generator_get_state(const kn_generator *generator, uint8_t state[KN_RNG_STATE_SIZE]);
KN_API kn_status kn_generator_set_state(kn_generator *generator, const uint8_t state[KN_RNG_STATE_SIZE]);

/* The offset alone: the number of blocks of four 32-bit words drawn so far. 0 with an error for NULL. */
KN_API uint64_t kn_generator_offset(const kn_generator *generator);
KN_API kn_status kn_generator_set_offset(kn_generator *generator, uint64_t offset);

KN_END_DECLS

#endif
