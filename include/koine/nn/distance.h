/* koine/nn/distance.h - distances as modules of two inputs (kn_forward_many); koine/distance.h has the formulas.
 * Constructors as in koine/module.h. */
#ifndef KOINE_NN_DISTANCE_H
#define KOINE_NN_DISTANCE_H

#include <koine/common.h>
#include <koine/distance.h>
#include <koine/module.h>

KN_BEGIN_DECLS

KN_API kn_module *kn_nn_cosine_similarity_with(const kn_cosine_similarity_params *params);
KN_API kn_module *kn_nn_pairwise_distance_with(const kn_pairwise_distance_params *params);
#define kn_nn_cosine_similarity(...)                                                                                   \
    KN_CALL(kn_nn_cosine_similarity_with(&(kn_cosine_similarity_params){KN_COSINE_SIMILARITY_DEFAULTS, __VA_ARGS__}))
#define kn_nn_pairwise_distance(...)                                                                                   \
    KN_CALL(kn_nn_pairwise_distance_with(&(kn_pairwise_distance_params){KN_PAIRWISE_DISTANCE_DEFAULTS, __VA_ARGS__}))

KN_END_DECLS

#endif
