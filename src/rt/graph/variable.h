/* rt/graph/variable.h - memory from which kernel arguments are read at each replay. Reference-counted: held by the
 * recording and by other users, such as the record of a dropout whose backward pass draws the same mask. */
#pragma once

#include <stddef.h>

void *kn_variable_new(size_t bytes);         /* zeroed, one reference; NULL with an error */
void kn_variable_keep(const void *variable); /* NULL allowed, as below */
void kn_variable_drop(const void *variable);
size_t kn_variable_size(const void *variable);
