/* defaults_index.c - operators by index, embeddings, shapes. */
#include "defaults.h"

static kn_tensor *rows_of(void) { return kn_from_data(((int64_t[]){2, 0, 0, 1}), KN_SHAPE(4), .dtype = KN_I64); }
static kn_tensor *places(void) { return kn_reshape(rows_of(), KN_SHAPE(2, 2)); }
static kn_tensor *mean1(void) { return kn_full(KN_SHAPE(1), 0.5); }
static kn_tensor *square(void) { return ramp(KN_SHAPE(2, 2)); }

/* kn_index_add_with(, kn_index_add_with_(, kn_put_with(, kn_put_with_(, kn_index_put_with(, kn_index_put_with_( */
#define SCATTERED(suffix)                                                                                              \
    CALLS(kn_index_add##suffix, kn_index_add_params, show_tensor,                                                      \
          kn_index_add_with##suffix(matrix(), 0, rows_of(), matrix(), params),                                         \
          kn_index_add##suffix(matrix(), 0, rows_of(), matrix()))                                                      \
    CALLS(kn_put##suffix, kn_put_params, show_tensor, kn_put_with##suffix(matrix(), places(), square(), params),       \
          kn_put##suffix(matrix(), places(), square()))                                                                \
    CALLS(kn_index_put##suffix, kn_put_params, show_tensor,                                                            \
          kn_index_put_with##suffix(matrix(), KN_TENSORS(places()), mean1(), params),                                  \
          kn_index_put##suffix(matrix(), KN_TENSORS(places()), mean1()))

SCATTERED()
SCATTERED(_)
CALLS(kn_scatter_reduce, kn_scatter_reduce_params, show_tensor,
      kn_scatter_reduce_with(matrix(), 0, places(), square(), KN_SCATTER_AMAX, params),
      kn_scatter_reduce(matrix(), 0, places(), square(), KN_SCATTER_AMAX))
CALLS(kn_index_reduce, kn_scatter_reduce_params, show_tensor,
      kn_index_reduce_with(matrix(), 0, rows_of(), matrix(), KN_SCATTER_AMAX, params),
      kn_index_reduce(matrix(), 0, rows_of(), matrix(), KN_SCATTER_AMAX))
CALLS(kn_embedding, kn_embedding_params, show_tensor, kn_embedding_with(places(), matrix(), params),
      kn_embedding(places(), matrix()))
CALLS(kn_embedding_bag, kn_embedding_bag_params, show_tensor, kn_embedding_bag_with(places(), matrix(), params),
      kn_embedding_bag(places(), matrix()))
CALLS(kn_diagonal, kn_diagonal_params, show_tensor, kn_diagonal_with(matrix(), params), kn_diagonal(matrix()))
CALLS(kn_diag_embed, kn_diag_embed_params, show_tensor, kn_diag_embed_with(matrix(), params), kn_diag_embed(matrix()))
CALLS(kn_linspace, kn_tensor_options, show_tensor, kn_linspace_with(0, 1, 4, params), kn_linspace(0, 1, 4))
CALLS(kn_logspace, kn_tensor_options, show_tensor, kn_logspace_with(0, 1, 4, 10, params), kn_logspace(0, 1, 4, 10))
CALLS(kn_eye, kn_tensor_options, show_tensor, kn_eye_with(2, 3, params), kn_eye(2, 3))
CALLS(kn_tril_indices, kn_tensor_options, show_tensor, kn_tril_indices_with(3, 3, 0, params), kn_tril_indices(3, 3, 0))
CALLS(kn_triu_indices, kn_tensor_options, show_tensor, kn_triu_indices_with(3, 3, 0, params), kn_triu_indices(3, 3, 0))
CALLS(kn_nn_flatten, kn_nn_flatten_params, show_module, kn_nn_flatten_with(params), kn_nn_flatten())
CALLS(kn_nn_embedding, kn_nn_embedding_params, show_module, kn_nn_embedding_with(params), kn_nn_embedding())
CALLS(kn_nn_embedding_bag, kn_nn_embedding_bag_params, show_module, kn_nn_embedding_bag_with(params),
      kn_nn_embedding_bag())
CALLS(embedding_of_4, kn_nn_embedding_params, show_module, kn_nn_embedding_with(params),
      kn_nn_embedding(.num_embeddings = 4, .embedding_dim = 3))
CALLS(embedding_bag_of_4, kn_nn_embedding_bag_params, show_module, kn_nn_embedding_bag_with(params),
      kn_nn_embedding_bag(.num_embeddings = 4, .embedding_dim = 3))
static void give_rows(void *params)
{
    ((kn_nn_embedding_params *)params)->num_embeddings = 4;
    ((kn_nn_embedding_params *)params)->embedding_dim = 3;
}
static void give_bag_rows(void *params)
{
    ((kn_nn_embedding_bag_params *)params)->num_embeddings = 4;
    ((kn_nn_embedding_bag_params *)params)->embedding_dim = 3;
}

/* clang-format off */
DEFAULTS(index_defaults,
         ROW(kn_index_add),
         ROW(kn_index_add_),
         ROW(kn_put),
         ROW(kn_put_),
         ROW(kn_index_put),
         ROW(kn_index_put_),
         ROW(kn_scatter_reduce),
         ROW(kn_index_reduce),
         ROW(kn_embedding),
         ROW(kn_embedding_bag),
         ROW(kn_diagonal),
         ROW(kn_diag_embed),
         ROW(kn_linspace),
         ROW(kn_logspace),
         ROW(kn_eye),
         ROW(kn_tril_indices),
         ROW(kn_triu_indices),
         ROW(kn_nn_flatten),
         NEEDS(kn_nn_embedding),
         NEEDS(kn_nn_embedding_bag),
         GIVEN(embedding_of_4, give_rows),
         GIVEN(embedding_bag_of_4, give_bag_rows))
/* clang-format on */
