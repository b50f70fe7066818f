/* tensor/scope.h - scopes that the library opens around calls of user functions.
 *
 * A module's forward, a hook and the like may store a tensor for later use, so the tensors they create must live until
 * a scope of the program ends. The library's own temporaries need not. So the library opens internal scopes for its
 * temporaries and leaves them while it calls user code:
 *
 *     int depth = kn_scope_begin_internal();
 *     int adopter = kn_scope_enter_user_code();
 *     y = forward(module, x);                      // its tensors belong to the program's innermost scope
 *     kn_scope_leave_user_code(adopter);
 *     return kn_scope_return(depth, y);
 *
 * If the program has no open scope, they belong to the outermost internal one: something has to release them. */
#pragma once

#include <koine/tensor.h>

/* Like kn_scope_begin. */
int kn_scope_begin_internal(void);

int kn_scope_enter_user_code(void);
void kn_scope_leave_user_code(int adopter);

/* Hands owned references to the enclosing scope, as results of a public function; NULLs stay NULL. Takes all
 * references, also on failure, which leaves `out` unchanged. */
kn_status kn_scope_adopt_all(kn_tensor **owned, int count, kn_tensor **out);

/* kn_scope_return for several tensors, which go to the enclosing scope and to `out`. */
kn_status kn_scope_return_all(int depth, kn_tensor **tensors, int count, kn_tensor **out);
