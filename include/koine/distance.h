/* koine/distance.h - distances and similarities of rows. Floating inputs. Tensor expressions (koine/tensor.h). */
#ifndef KOINE_DISTANCE_H
#define KOINE_DISTANCE_H

#include <koine/common.h>
#include <koine/tensor.h>

KN_BEGIN_DECLS

typedef struct kn_cosine_similarity_params {
    int dim;    /* default 1 */
    double eps; /* default 1e-8: a smaller norm counts as this */
} kn_cosine_similarity_params;
#define KN_COSINE_SIMILARITY_DEFAULTS .dim = 1, .eps = 1e-8
KN_API kn_cosine_similarity_params kn_cosine_similarity_params_init(void);

/* The cosine of the angle between x1 and x2 along dim, which the result lacks; shapes broadcast. */
KN_API kn_tensor *kn_cosine_similarity_with(kn_tensor *x1, kn_tensor *x2, const kn_cosine_similarity_params *params);
#define kn_cosine_similarity(x1, x2, ...)                                                                              \
    KN_CALL(                                                                                                           \
        kn_cosine_similarity_with(x1, x2, &(kn_cosine_similarity_params){KN_COSINE_SIMILARITY_DEFAULTS, __VA_ARGS__}))

typedef struct kn_pairwise_distance_params {
    double p;     /* default 2 */
    double eps;   /* default 1e-6, added to each difference */
    bool keepdim; /* default false */
} kn_pairwise_distance_params;
#define KN_PAIRWISE_DISTANCE_DEFAULTS .p = 2, .eps = 1e-6
KN_API kn_pairwise_distance_params kn_pairwise_distance_params_init(void);

/* The p-norm of x1 - x2 + eps along the last dimension; shapes broadcast. */
KN_API kn_tensor *kn_pairwise_distance_with(kn_tensor *x1, kn_tensor *x2, const kn_pairwise_distance_params *params);
#define kn_pairwise_distance(x1, x2, ...)                                                                              \
    KN_CALL(                                                                                                           \
        kn_pairwise_distance_with(x1, x2, &(kn_pairwise_distance_params){KN_PAIRWISE_DISTANCE_DEFAULTS, __VA_ARGS__}))

/* The p-norms, p >= 0, of the differences of all pairs of rows: x1 [..., P, M] and x2 [..., R, M] give [..., P, R]; the
 * leading dimensions broadcast. With p = 2 and more than 25 rows in x1 or x2, by a matrix product, as torch.cdist by
 * default: distances far below the rows' norms lose digits. Else from the differences, which are not in memory. With
 * p = inf all of the largest differences get the whole gradient. */
KN_API kn_tensor *kn_cdist(kn_tensor *x1, kn_tensor *x2, double p);

/* The p-norms of the differences of rows i < j of x [N, M]: [N (N - 1) / 2], in the order (0, 1), (0, 2), ... */
KN_API kn_tensor *kn_pdist(kn_tensor *x, double p);

KN_END_DECLS

#endif
