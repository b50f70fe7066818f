/* rt/graph/variable.h - memory that kernels' arguments are read from at each replay. Counted: a recording holds its
 * variables, and so does whoever else names one, such as the record of a dropout whose backward pass draws the same
 * mask. */
#ifndef KN_RT_GRAPH_VARIABLE_H
#define KN_RT_GRAPH_VARIABLE_H

#include <stddef.h>

void *kn_variable_new(size_t bytes);         /* zeroed, one reference; NULL with an error */
void kn_variable_keep(const void *variable); /* NULL allowed, as below */
void kn_variable_drop(const void *variable);
size_t kn_variable_size(const void *variable);

#endif
